/**
 * What the exporters share: where a row's prompt ends, which rows another trainer may count, and how what does not fit is told.
 *
 * A row's prompt ends where the first token that was sampled for it begins: tokens of an earlier turn that the row only repeats
 * (`other-row`) are its prompt. A rollout that was never scored, or whose ending is outside the baseline, has no number that
 * another trainer could take for a reward, so its rows are left out and named; 0 in their place would teach.
 */
import { type BatchRow, trainedMask } from "@rolldeck/contracts/batch-row";
import { endingRule } from "@rolldeck/contracts/endings";

/** A row that a format can't hold, or output that breaks the format; `row` is its number there. */
export class ExportError extends RangeError {
  override readonly name = "ExportError";
  constructor(
    readonly row: number,
    readonly field: string,
    what: string,
  ) {
    super(`row ${row}: ${field} ${what}`);
  }
}

/** A row that is not exported, and why. */
export interface LeftOutRow {
  readonly row: number;
  readonly rolloutId: string;
  readonly why: "no reward" | "outside the baseline" | "nothing sampled";
}

/** A row as prompt and response; lists have the response's length. */
export interface SplitRow {
  readonly source: BatchRow;
  readonly reward: number;
  readonly prompt: readonly number[];
  readonly response: readonly number[];
  readonly mask: readonly (0 | 1)[];
  /** Null where not sampled, or not told. */
  readonly logprobs: readonly (number | null)[];
  /** Is it the last row of its rollout? */
  readonly last: boolean;
}

/** Tokens before the first one that was sampled for this row. */
export function promptLength(row: Pick<BatchRow, "tokens" | "mask" | "policyVersions">): number {
  let end = 0;
  for (const { count, reason } of row.mask) {
    const start = end;
    end += count;
    if (reason === "other-row") continue;
    const sampled = row.policyVersions.slice(start, end).findIndex((version) => version !== null);
    if (sampled !== -1) return start + sampled;
  }
  return row.tokens.length;
}

/** @throws ExportError for a row without a prompt, and where rows of a group or a rollout do not lie beside each other */
export function splitRows(rows: readonly BatchRow[]): { rows: SplitRow[]; leftOut: LeftOutRow[] } {
  checkOrder(rows, "groupId");
  checkOrder(rows, "rolloutId");
  const leftOut: LeftOutRow[] = [];
  const kept: Omit<SplitRow, "last">[] = [];
  for (const row of rows) {
    const start = promptLength(row);
    const why = whyLeftOut(row, start);
    if (why !== null || row.reward === null)
      leftOut.push({ row: row.row, rolloutId: row.rolloutId, why: why ?? "no reward" });
    else kept.push(splitRow(row, row.reward, start));
  }
  const rolloutOf = (place: number): string | undefined => kept[place]?.source.rolloutId;
  return { leftOut, rows: kept.map((row, place) => ({ ...row, last: rolloutOf(place) !== rolloutOf(place + 1) })) };
}

function whyLeftOut(row: BatchRow, start: number): LeftOutRow["why"] | null {
  if (row.reward === null) return "no reward";
  if (!endingRule(row.ending).inBaseline) return "outside the baseline";
  return start === row.tokens.length ? "nothing sampled" : null;
}

function splitRow(row: BatchRow, reward: number, start: number): Omit<SplitRow, "last"> {
  if (start === 0) throw new ExportError(row.row, "tokens", "have no prompt");
  return {
    source: row,
    reward,
    prompt: row.tokens.slice(0, start),
    response: row.tokens.slice(start),
    mask: trainedMask(row).slice(start),
    logprobs: row.samplerLogprobs.slice(start),
  };
}

function checkOrder(rows: readonly BatchRow[], key: "groupId" | "rolloutId"): void {
  const seen = new Set<string>();
  let before: string | null = null;
  for (const row of rows) {
    if (row[key] === before) continue;
    if (seen.has(row[key])) throw new ExportError(row.row, key, "stands apart from the other rows that have it");
    seen.add(row[key]);
    before = row[key];
  }
}

/** Logprobs where a format needs a number: 0.0 where the mask is 0 and none is known. @throws ExportError where it is 1 */
export const withoutNull = (
  row: number,
  field: string,
  logprobs: readonly (number | null)[],
  mask: readonly (0 | 1)[],
): number[] =>
  logprobs.map((logprob, place) => {
    if (logprob !== null && Number.isFinite(logprob)) return logprob;
    if (mask[place] === 1) throw new ExportError(row, field, `lack token ${place} of the response, which is trained`);
    return 0;
  });
