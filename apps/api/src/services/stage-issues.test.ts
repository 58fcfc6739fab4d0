import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stageIssues } from "./stage-issues.ts";

type Spans = readonly { readonly fromStep?: number; readonly untilStep?: number | null }[];
const config = (spans: Spans, more: Partial<RunConfigInput> = {}) =>
  RunConfig.parse({
    taskSets: spans.map((span, at) => ({ name: `set-${at}`, ...span })),
    budget: { steps: 10 },
    ...more,
  });
const said = (spans: Spans, more: Partial<RunConfigInput> = {}) =>
  stageIssues(config(spans, more)).map(({ path, message }) => `${path}: ${message}`);

describe("stages", () => {
  it("names the first step without a set", () => {
    expect(said([{ untilStep: 4 }, { fromStep: 6 }])).toEqual(["taskSets: no task set is trained in step 5"]);
    expect(said([{ fromStep: 2 }])).toEqual(["taskSets: no task set is trained in step 1"]);
    expect(said([{ untilStep: 9 }])).toEqual(["taskSets: no task set is trained in step 10"]);
    expect(said([{ untilStep: 5 }, { fromStep: 3 }])).toEqual([]);
  });
  it("refuses a span that ends before it begins, and spans of an outside trainer's run", () => {
    expect(said([{ fromStep: 5, untilStep: 4 }])).toEqual(["taskSets[0].untilStep: is before fromStep 5"]);
    expect(said([{}, { fromStep: 2 }], { stepSource: "driven" })).toEqual([
      "taskSets[1].fromStep: an outside trainer names the instances of its steps",
    ]);
  });
  it("finds a gap exactly where a step has no set", () => {
    const Span = fc
      .tuple(fc.integer({ min: 1, max: 12 }), fc.option(fc.nat(8)))
      .map(([fromStep, more]) => ({ fromStep, untilStep: more === null ? null : fromStep + more }));
    fc.assert(
      fc.property(fc.array(Span, { minLength: 1, maxLength: 4 }), (spans) => {
        const covered = (step: number) =>
          spans.some(({ fromStep, untilStep }) => fromStep <= step && step <= (untilStep ?? step));
        const gap = Array.from({ length: 10 }, (_, at) => at + 1).find((step) => !covered(step));
        expect(said(spans)).toEqual(gap === undefined ? [] : [`taskSets: no task set is trained in step ${gap}`]);
      }),
    );
  });
});

describe("overfit", () => {
  const overfit = (more: Partial<RunConfigInput>) => said([{}], { preflight: "overfit", ...more });
  it("is accepted as it is, and refused where it could tell nothing", () => {
    expect(overfit({})).toEqual([]);
    expect(overfit({ budget: { steps: 4 } })).toEqual([
      "budget.steps: fewer than 5 steps say nothing about whether a reward rises",
    ]);
    expect(overfit({ dispatcher: { zeroVariance: { mode: "replace" }, overSample: { groups: 1 } } })).toHaveLength(2);
    expect(overfit({ kind: "evaluate" })[0]).toContain("preflight: overfitting needs steps");
  });
});
