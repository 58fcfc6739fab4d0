/** packages/rl against what the packages said, without installing them. */
import { type FidelityBatch, fidelityBatches } from "@rolldeck/rl/testing/fidelity-batches";
import { describe, expect, it } from "vitest";
import { compare } from "./comparison.ts";
import { condense, readGolden } from "./golden.ts";
import { batchesHash, comparisonsOf, exportsHash, lockHash, outsidePackages } from "./packages.ts";
import type { Numbers } from "./reference-output.ts";

const batches = fidelityBatches();
const shape = (numbers: Numbers, batch: FidelityBatch) => condense(numbers, batch);

describe.each(outsidePackages)("golden outputs of %s", (name) => {
  const golden = readGolden(name);

  it("belong to the lock file, the batches and what our exporters write; else `npm run fidelity -- --write-golden`", () => {
    expect(golden.lockHash).toBe(lockHash(name));
    expect(golden.batchesHash).toBe(batchesHash());
    expect(golden.exportsHash).toBe(exportsHash(name));
  });

  it("answer every operation, each of which is compared", () => {
    expect(golden.output.missing).toEqual([]);
    expect(Object.keys(golden.output.ops).sort()).toEqual(comparisonsOf[name].map(({ op }) => op).sort());
  });

  it.each(comparisonsOf[name])("$what is what $against says", (comparison) => {
    const compared = compare(comparison, golden.output, batches, shape);
    expect(compared?.failure).toBeNull();
    expect(compared?.row.maxAbsDiff).not.toBeNull();
  });
});
