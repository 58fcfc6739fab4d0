/** Sets of token places written as ranges [start, end). Pure. */
import type { TokenRange } from "@rolldeck/contracts/segments";

/** The same places, sorted, without overlap and without empty ranges. */
export function merged(ranges: readonly TokenRange[]): TokenRange[] {
  const out: TokenRange[] = [];
  for (const { start, end } of ranges.filter((range) => range.end > range.start).sort((a, b) => a.start - b.start)) {
    const last = out.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else out.push({ start, end });
  }
  return out;
}

/** Places of `from` that are not in `taken`, in the order of `from`. */
export function without(from: readonly TokenRange[], taken: readonly TokenRange[]): TokenRange[] {
  const gone = merged(taken);
  return from.flatMap((range) => {
    const left: TokenRange[] = [];
    let at = range.start;
    for (const { start, end } of gone) {
      if (end <= at) continue;
      if (start >= range.end) break;
      if (start > at) left.push({ start: at, end: start });
      at = end;
    }
    if (at < range.end) left.push({ start: at, end: range.end });
    return left;
  });
}

/** Places in the ranges, each counted once. */
export const countPlaces = (ranges: readonly TokenRange[]): number =>
  merged(ranges).reduce((sum, { start, end }) => sum + end - start, 0);
