/** One comparison of ours with an outside function, and what it comes to over all batches. */
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import type { Numbers, ReferenceOutput } from "./reference-output.ts";

/** Where the two are not the same number, both formulas, and ours converted to theirs. */
interface Difference {
  readonly ours: string;
  readonly theirs: string;
  /** What makes ours theirs, in words. */
  readonly mapping: string;
  readonly mapped: (batch: FidelityBatch) => Numbers;
}

export interface Comparison {
  /** Name of the operation in the package's reference.py. */
  readonly op: string;
  readonly what: string;
  /** The outside function. */
  readonly against: string;
  /** Distribution whose version counts. */
  readonly distribution: string;
  readonly ours: (batch: FidelityBatch) => Numbers;
  /** How our input or setting is given so that both compute the same thing; "" when nothing needs saying. */
  readonly given?: string;
  readonly differs?: Difference;
}

/** A row of the printed table. */
export interface FidelityRow {
  readonly what: string;
  readonly against: string;
  readonly version: string;
  /** The batch with the largest difference. */
  readonly batch: string;
  readonly mapping: string;
  /** Of our number, converted where `expected` is `differs`. Null: shapes differ, or a number is not finite. */
  readonly maxAbsDiff: number | null;
  readonly expected: "equal" | "differs";
}

export interface Compared {
  readonly row: FidelityRow;
  readonly comparison: Comparison;
  readonly bound: number;
  /** Largest difference before ours was converted; null where nothing was converted. */
  readonly unconverted: number | null;
  readonly failure: string | null;
}

const bounds = { float64: 1e-5, float32: 1e-4 } as const;

/** Largest |a − b| over everything that `theirs` holds; Infinity where a shape differs or a number is missing. */
export function maxAbsDiff(ours: unknown, theirs: unknown): number {
  if (typeof theirs === "number") {
    const gap = typeof ours === "number" ? Math.abs(ours - theirs) : Number.NaN;
    return Number.isFinite(gap) ? gap : Number.POSITIVE_INFINITY;
  }
  if (Array.isArray(theirs)) {
    if (!Array.isArray(ours) || ours.length !== theirs.length) return Number.POSITIVE_INFINITY;
    return theirs.reduce((worst: number, value, i) => Math.max(worst, maxAbsDiff(ours[i], value)), 0);
  }
  if (typeof theirs !== "object" || theirs === null || typeof ours !== "object" || ours === null)
    return Number.POSITIVE_INFINITY;
  const mine = new Map<string, unknown>(Object.entries(ours));
  return Object.entries(theirs).reduce((worst, [key, value]) => Math.max(worst, maxAbsDiff(mine.get(key), value)), 0);
}

interface Worst {
  readonly batch: string;
  readonly gap: number;
}

function worstOf(
  batches: readonly FidelityBatch[],
  ours: (batch: FidelityBatch) => Numbers,
  theirs: Readonly<Record<string, Numbers>>,
  shape: (numbers: Numbers, batch: FidelityBatch) => Numbers,
): Worst {
  return batches.reduce<Worst>(
    (worst, batch) => {
      const gap = maxAbsDiff(shape(ours(batch), batch), theirs[batch.name]);
      return worst.batch === "" || gap > worst.gap ? { batch: batch.name, gap } : worst;
    },
    { batch: "", gap: 0 },
  );
}

/**
 * Our numbers on every batch against the package's.
 * @param shape what of ours the reference kept: golden outputs keep less than a run of the package gives
 * @returns null when the package could not be asked: that is told among what is missing
 */
export function compare(
  comparison: Comparison,
  reference: ReferenceOutput,
  batches: readonly FidelityBatch[],
  shape: (numbers: Numbers, batch: FidelityBatch) => Numbers = (numbers) => numbers,
): Compared | null {
  const theirs = reference.ops[comparison.op];
  if (theirs === undefined) return null;
  const bound = bounds[reference.dtype];
  const { differs } = comparison;
  const worst = worstOf(batches, differs?.mapped ?? comparison.ours, theirs, shape);
  const unconverted = differs === undefined ? null : worstOf(batches, comparison.ours, theirs, shape).gap;
  return {
    comparison,
    bound,
    unconverted,
    failure: failureOf(worst, bound, unconverted),
    row: {
      what: comparison.what,
      against: comparison.against,
      version: reference.versions[comparison.distribution] ?? "unknown",
      batch: worst.batch,
      mapping: differs?.mapping ?? comparison.given ?? "",
      maxAbsDiff: Number.isFinite(worst.gap) ? worst.gap : null,
      expected: differs === undefined ? "equal" : "differs",
    },
  };
}

function failureOf(worst: Worst, bound: number, unconverted: number | null): string | null {
  if (!(worst.gap <= bound)) return `${worst.gap} on ${worst.batch}, over ${bound}`;
  if (unconverted !== null && unconverted <= bound)
    return "said to differ, but our numbers are theirs without any conversion";
  return null;
}
