import { presets } from "@rolldeck/contracts/presets";
import { expect, test } from "vitest";
import { pathText } from "../new-run/config-text.ts";
import { changed, draftFaults, firstVariants, issuesOfVariant, variantFields } from "./variant-draft.ts";

test("a change keeps what is set and loses what is left alone, with the mappings that held it", () => {
  const lora = changed({}, ["backend", "lora"], { rank: 8 });
  expect(lora).toEqual({ backend: { lora: { rank: 8 } } });
  const both = changed(lora, ["algorithm", "gradClipNorm"], 0);
  expect(changed(both, ["backend", "lora", "rank"], 16)).toEqual({
    backend: { lora: { rank: 16 } },
    algorithm: { gradClipNorm: 0 },
  });
  expect(changed(both, ["backend", "lora"], undefined)).toEqual({ algorithm: { gradClipNorm: 0 } });
  expect(changed(lora, ["backend", "lora"], null)).toEqual({ backend: { lora: null } });
  expect(changed(lora, ["backend", "lora"], undefined)).toEqual({});
});

test("a variant shows its backend's fields, what it changes, and what is refused, with the common config's values", () => {
  const common = presets.quickstart.config;
  const change = { backend: { name: "tinker", dialect: "skyrl" }, algorithm: { gradClipNorm: 0 } };
  const issue = (path: string) => ({ path, message: "refused", fix: null });
  const issues = [
    issue("backend.lora"),
    issue("model.warmStart"),
    issue("taskSets[0].name"),
    issue("algorithm.dualClip"),
  ];
  const { backend, others, elsewhere } = variantFields(
    { label: "s", change },
    common,
    { ...common, ...change },
    issues,
  );
  const names = (fields: typeof backend) => fields.map(({ path }) => pathText(path));
  expect(names(backend)).toEqual([
    "backend.name",
    "backend.dialect",
    "backend.server",
    "backend.endpoint",
    "backend.lora",
  ]);
  expect(names(others)).toEqual(["algorithm.gradClipNorm", "model.warmStart", "algorithm.dualClip"]);
  expect(others.map(({ label }) => label)).toEqual([
    "Algorithm: grad clip norm",
    "Model: warm start",
    "Algorithm: dual clip",
  ]);
  expect(elsewhere).toEqual([issue("taskSets[0].name")]);
  const plain = variantFields({ label: "a", change: {} }, { backend: { lora: { rank: 4 } } }, {}, []);
  expect(names(plain.backend)).toEqual(["backend.name", "backend.lora"]);
  expect(plain.backend.map((field) => field.default)).toEqual(["gpu-worker", null]);
});

test("names, labels and the number of variants are looked at before a server is asked", () => {
  expect(draftFaults("rates", firstVariants)).toEqual([]);
  expect(draftFaults(" ", [{ label: "", change: {} }])).toHaveLength(3);
  const twice = { label: "a", change: {} };
  expect(draftFaults("rates", [twice, { ...twice, label: "a " }])).toEqual(["Two variants are called a."]);
});

test("what a launch was refused for is said of the variant that it names", () => {
  const issue = (path: string) => ({ path, message: "no", fix: null });
  const issues = [
    issue("config.model.name"),
    issue("variants[1].backend.lora"),
    issue("variants[11].kind"),
    issue("variants[1]"),
  ];
  expect(issuesOfVariant(issues, 1)).toEqual([issue("backend.lora"), issue("")]);
  expect(issuesOfVariant(issues, 0)).toEqual([]);
});
