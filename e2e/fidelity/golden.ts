/**
 * Golden outputs: what the packages said when their lock files were made, small enough to commit. Scalars and advantages of
 * every batch; arrays over tokens of the vectors and five random batches, and of the others only their sums.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import { z } from "zod";
import { batchesHash, exportsHash, goldenFile, lockHash, type OutsidePackage } from "./packages.ts";
import { type Numbers, ReferenceOutput } from "./reference-output.ts";

export const Golden = z.strictObject({
  /** SHA-256 of the lock file and of the batches that the output belongs to. */
  lockHash: z.string(),
  batchesHash: z.string(),
  /** Of what our exporter made of the batches. */
  exportsHash: z.string(),
  output: ReferenceOutput,
});
export type Golden = z.infer<typeof Golden>;

const wholeRandomBatches = 5;
const keepsArrays = ({ seed }: FidelityBatch): boolean => seed === null || seed <= wholeRandomBatches;

/** Six decimals are a tenth of the bound, and half the file. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6 + 0;
type Nested = NonNullable<Numbers["values"]>;

const total = (values: Nested): number =>
  typeof values === "number" ? values : values.reduce<number>((sum, value) => sum + total(value), 0);
const roundedAll = (values: Nested): Nested => (typeof values === "number" ? rounded(values) : values.map(roundedAll));

/** One number per row where all of its trained tokens have the same; else null. */
function perRow(values: Nested, batch: FidelityBatch): number[] | null {
  if (typeof values === "number") return null;
  const rows = values.map((row, index): number | null => {
    if (typeof row === "number") return row;
    const trained = row.flatMap((value, t) => (batch.mask[index]?.[t] === 1 ? [Number(value)] : []));
    const first = trained[0] ?? 0;
    return trained.every((value) => Math.abs(value - first) < 1e-12) ? first : null;
  });
  return rows.every((row) => row !== null) ? rows : null;
}

/** What of a batch's numbers is committed. Ours are brought to the same shape before they are compared. */
export function condense(numbers: Numbers, batch: FidelityBatch): Numbers {
  const array = (values: Nested | undefined) => {
    if (values === undefined) return undefined;
    return keepsArrays(batch) ? roundedAll(values) : rounded(total(values));
  };
  const { value, advantages } = numbers;
  const rows = advantages === undefined ? null : perRow(advantages, batch);
  return Object.fromEntries(
    Object.entries({
      value: value === undefined ? undefined : rounded(value),
      gradient: array(numbers.gradient),
      advantages: rows === null ? array(advantages) : roundedAll(rows),
      values: array(numbers.values),
    }).filter(([, kept]) => kept !== undefined),
  );
}

export function writeGolden(name: OutsidePackage, output: ReferenceOutput, batches: readonly FidelityBatch[]): void {
  const ops = Object.entries(output.ops).map(([op, answers]): [string, Record<string, Numbers>] => [
    op,
    Object.fromEntries(batches.map((batch) => [batch.name, condense(answers[batch.name] ?? {}, batch)])),
  ]);
  const golden: Golden = {
    lockHash: lockHash(name),
    batchesHash: batchesHash(),
    exportsHash: exportsHash(name),
    output: { ...output, ops: Object.fromEntries(ops) },
  };
  writeFileSync(goldenFile(name), `${JSON.stringify(golden)}\n`);
}

export const readGolden = (name: OutsidePackage): Golden =>
  Golden.parse(JSON.parse(readFileSync(goldenFile(name), "utf8")));
