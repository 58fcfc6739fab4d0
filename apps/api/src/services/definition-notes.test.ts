import type { NativeValues } from "@rolldeck/contracts/api/comparisons";
import { nativeMetric } from "@rolldeck/contracts/metrics";
import { expect, test } from "vitest";
import { definitionNotes } from "./definition-notes.ts";

const said = (backend: string, ...names: string[]): NativeValues => ({
  runId: backend,
  backend,
  values: names.flatMap((name) => {
    const metric = nativeMetric(backend, name);
    return metric === null ? [] : [{ metric, name, step: 1, value: 1 }];
  }),
});

test("always says who calls what the mismatch", () => {
  const [first, ...others] = definitionNotes([]);
  expect(others).toEqual([]);
  for (const word of ["SkyRL", "mean |Δlogprob|", "VeRL", "mean |Δprob|", "tinker-cookbook", "signed mean"])
    expect(first?.text).toContain(word);
});

test("a backend's number that is defined as a shared one is told to be so", () => {
  const notes = definitionNotes([said("verl", "training/rollout_probs_diff_mean"), said("gpu-worker", "loss:sum")]);
  const [note] = notes.filter(({ metrics }) => metrics.length === 1);
  expect(note?.metrics).toEqual(["shared/mismatch-prob"]);
  expect(note?.text).toContain("training/rollout_probs_diff_mean of verl");
});

test("names that several backends use are told not to be comparable", () => {
  const notes = definitionNotes([said("verl", "grad_norm", "a"), said("gpu-worker", "grad_norm", "b")]);
  expect(notes.at(-1)?.text).toContain("reports grad_norm:");
  expect(definitionNotes([said("tinker", "grad_norm"), said("tinker", "grad_norm")])).toHaveLength(1);
});

test("what an outside trainer does not tell is said to be n/a, and for which backend", () => {
  const [, note] = definitionNotes([said("gpu-worker"), said("verl"), said("openai-completions")]);
  expect(note?.metrics).toContain("shared/mismatch-logprob");
  expect(note?.metrics).not.toContain("shared/reward");
  expect(note?.text).toMatch(/runs on verl, openai-completions are not made here.*n\/a/);
});
