/** A run's chat template is tried before its model is made: one that can't be trained on ends the run with the reason. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

vi.setConfig({ testTimeout: 120_000 });

let rig: Rig;
let templates: string;
const turn = "{%- for m in messages -%}{{- '<|assistant|>' if m.role == 'assistant' else '<|user|>' -}}";
const end = "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}";
beforeAll(async () => {
  templates = await mkdtemp(join(tmpdir(), "rolldeck-templates-"));
  const write = (name: string, text: string) => writeFile(join(templates, `${name}.jinja`), text);
  await write("counts", `${turn}{{- messages | length ~ m.content ~ '<|end|>' -}}{%- endfor -%}${end}`);
  await write(
    "strips",
    `${turn}{{- m.reasoning_content if loop.last else '' -}}{{- m.content ~ '<|end|>' -}}{%- endfor -%}${end}`,
  );
  rig = await startRig({ env: { ROLLDECK_TEMPLATE_ROOTS: templates } });
});
afterAll(async () => {
  await rig?.close();
  await rm(templates, { recursive: true, force: true });
});

const withTemplate = (chatTemplate: string) => {
  const config = smokeConfig({ budget: { steps: 1 } });
  return { ...config, model: { ...config.model, chatTemplate } };
};

test("a template that rewrites earlier turns fails the run at once, and says where", async () => {
  const runId = await rig.launch(withTemplate("counts"));
  expect(await rig.untilStatus(runId, "failed", "completed")).toBe("failed");
  const { reason } = await rig.status(runId);
  expect(reason).toContain("rewrites what came before");
  expect(await rig.value("select prepare_failures from runs where id = $1", [runId])).toBe(1);
  expect(rig.gpu.models()).toEqual([]);
});
test("a template that is not there fails the run with its name and those there are", async () => {
  const runId = await rig.launch(withTemplate("absent"));
  expect(await rig.untilStatus(runId, "failed", "completed")).toBe("failed");
  expect((await rig.status(runId)).reason).toContain('no chat template "absent"; this server has: counts, strips');
});
test("a template that takes thinking out is told once and trains", async () => {
  const runId = await rig.launch(withTemplate("strips"));
  expect(await rig.untilStatus(runId, "failed", "completed")).toBe("completed");
  const notes = (await rig.events(runId)).filter(
    (body) => body.type === "note" && body.message.startsWith("Chat template"),
  );
  expect(notes).toMatchObject([{ level: "warning", message: expect.stringContaining("takes earlier thinking out") }]);
});
