import { fidelityBatches } from "@rolldeck/rl/testing/fidelity-batches";
import { describe, expect, it } from "vitest";
import { type Comparison, compare, maxAbsDiff } from "./comparison.ts";
import type { ReferenceOutput } from "./reference-output.ts";

const batches = fidelityBatches().slice(0, 2);
const output = (value: number): ReferenceOutput => ({
  versions: { outside: "1.2.3" },
  dtype: "float64",
  missing: [],
  ops: { op: Object.fromEntries(batches.map(({ name }, index) => [name, { value: value + index }])) },
});
const comparison = (value: number, differs?: Comparison["differs"]): Comparison => ({
  op: "op",
  what: "w",
  against: "outside.f",
  distribution: "outside",
  ours: (batch) => ({ value: value + batches.findIndex(({ name }) => name === batch.name) }),
  differs,
});

describe("maxAbsDiff", () => {
  it("is the largest difference at any depth", () => {
    expect(maxAbsDiff({ value: 1, gradient: [[1, 2], [3]] }, { value: 1, gradient: [[1, 2.5], [3]] })).toBe(0.5);
  });

  it.each([
    ["a number that is not one", { value: Number.NaN }, { value: 1 }],
    ["a missing key", {}, { value: 1 }],
    ["another number of rows", { values: [1] }, { values: [1, 2] }],
    ["a number for an array", { values: 1 }, { values: [1] }],
  ])("is infinite for %s", (_, ours, theirs) => {
    expect(maxAbsDiff(ours, theirs)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("compare", () => {
  it("names the worst batch and passes within the bound", () => {
    const compared = compare(comparison(1 + 5e-6), output(1), batches);
    expect(compared?.failure).toBeNull();
    expect(compared?.row).toMatchObject({ version: "1.2.3", expected: "equal", mapping: "" });
  });

  it("fails over the bound", () => {
    expect(compare(comparison(1 + 2e-5), output(1), batches)?.failure).toContain("over 0.00001");
  });

  it("compares the converted number where formulas differ, and refuses a difference that is none", () => {
    const differs = (shift: number): Comparison["differs"] => ({
      ours: "x",
      theirs: "x + 1",
      mapping: "+ 1",
      mapped: (batch) => ({ value: (comparison(1).ours(batch).value ?? 0) + shift }),
    });
    expect(compare(comparison(1, differs(1)), output(2), batches)).toMatchObject({ failure: null, unconverted: 1 });
    expect(compare(comparison(1, differs(0)), output(1), batches)?.failure).toContain("without any conversion");
  });

  it("has no row for what the package did not answer", () => {
    expect(compare({ ...comparison(1), op: "other" }, output(1), batches)).toBeNull();
  });
});
