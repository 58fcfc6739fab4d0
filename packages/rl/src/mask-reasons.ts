/**
 * Why a token carries loss mask 0. The one place that decides it, per token, from the segment's origin, the ending table,
 * the reward and the turn. Stored run-length encoded in training_rows.mask: a flat list (count, reason index or −1 where
 * the token is trained), counts in row order, their sum = the row's length.
 */
import { type Ending, endingRule, type MaskReason, maskReasons } from "@rolldeck/contracts/endings";
import type { Segment, TurnRecord } from "@rolldeck/contracts/segments";
import { isScored } from "./group-advantages.ts";
import type { PackedRow } from "./pack-trajectory.ts";
import { positionsOf, rangesLength, segmentOffsets, type TrajectoryTokens } from "./trajectory-tokens.ts";

/** null = trained. */
export type TokenMask = MaskReason | null;

/** A reason that masks every sampled token of the rollout, or null. */
export function rolloutMask(rollout: { ending: Ending; reward: number | null }, trainCut: boolean): TokenMask {
  const rule = endingRule(rollout.ending);
  if (rollout.ending === "stale") return "stale";
  if (rule.kind === "failed" || rule.kind === "cancelled") return "ending-failed";
  if (!isScored(rollout.reward)) return "no-reward";
  if (!rule.trained && !(rule.kind === "cut" && trainCut)) return "ending-cut";
  return null;
}

/**
 * Mask of every token of a row, in order. Sampled tokens of turns that gave no usable call are masked: the policy was told
 * to try again, and the lesson of the rollout's reward belongs to the calls that ran. So are turns that were cut and that
 * the rollout went on after (half a thought is no lesson), and turns whose tokens the server itself contradicts.
 * @param whole reason for the whole rollout or row (ending, reward, over-length), null when there is none
 */
export function rowMask(row: PackedRow, trajectory: TrajectoryTokens, whole: TokenMask): TokenMask[] {
  const { segments, turns } = trajectory;
  const offsets = segmentOffsets(segments);
  const newest = turns.at(-1)?.turn;
  const mask: TokenMask[] = [];
  let index = 0;
  for (const position of positionsOf(row.ranges)) {
    while (position >= (offsets[index + 1] ?? Number.POSITIVE_INFINITY)) index += 1;
    while (position < (offsets[index] ?? 0)) index -= 1;
    const segment = segments[index];
    if (segment === undefined) throw new RangeError(`position ${position} lies outside the trajectory`);
    mask.push(segment.origin === "sampled" ? "other-row" : segment.origin);
  }
  row.sampled.forEach((range, nth) => {
    const turn = turns.find((candidate) => candidate.turn === row.turns[nth]);
    if (turn === undefined) throw new RangeError(`row names turn ${row.turns[nth]}, which the trajectory lacks`);
    const segment = segments[turn.sampledSegment];
    // A sub-agent's cut turn ends its thread only: the rollout went on, if only to say so.
    const ofTurn = whole ?? turnMask(turn, turn.turn === newest && turn.thread === "");
    for (let position = range.start; position < range.end; position++) {
      mask[position] = ofTurn ?? sampledTokenMask(segment, position - range.start) ?? callMask(turn);
    }
  });
  if (mask.length !== rangesLength(row.ranges)) throw new RangeError("the mask does not cover the row");
  return mask;
}

/** @param newest the rollout ended with it: then its ending says whether a cut is trained */
function turnMask({ notes, stopReason }: TurnRecord, newest: boolean): TokenMask {
  if (notes.some(({ kind }) => kind === "usage" || kind === "drift")) return "incomplete-sample";
  return stopReason === "length" && !newest ? "turn-cut" : null;
}

function sampledTokenMask(segment: Segment | undefined, offset: number): TokenMask {
  const logprobs = segment?.logprobs ?? null;
  // A server that sent fewer logprobs than tokens left no way to tell which is whose.
  if (logprobs === null || logprobs.length !== segment?.tokens.length) return "no-logprob";
  return Number.isFinite(logprobs[offset]) ? null : "no-logprob";
}

/** A cut turn is none of these, though the policy was told of it too: `turnMask` has decided on it. */
const callMask = ({ parseError, calls, stopReason }: TurnRecord): TokenMask =>
  stopReason === "stop" && parseError !== null && calls.length === 0 ? "parse-retry" : null;

/** Runs of equal fate, token by token. */
export const spanMask = (spans: readonly { readonly count: number; readonly reason: TokenMask }[]): TokenMask[] =>
  spans.flatMap(({ count, reason }) => new Array<TokenMask>(count).fill(reason));

/** Flat (count, reason index or −1) list. */
export function encodeMask(mask: readonly TokenMask[]): number[] {
  const runs: number[] = [];
  for (const reason of mask) {
    const code = reason === null ? -1 : maskReasons.indexOf(reason);
    if (runs.at(-1) === code) runs[runs.length - 2] = (runs[runs.length - 2] ?? 0) + 1;
    else runs.push(1, code);
  }
  return runs;
}

/** @throws RangeError when the list is not one that `encodeMask` writes */
export function decodeMask(runs: readonly number[]): TokenMask[] {
  if (runs.length % 2 !== 0) throw new RangeError("a run-length mask has an even number of entries");
  const mask: TokenMask[] = [];
  for (let index = 0; index < runs.length; index += 2) {
    const count = runs[index] ?? 0;
    const code = runs[index + 1] ?? -1;
    const reason = code === -1 ? null : maskReasons[code];
    if (reason === undefined || !Number.isInteger(count) || count < 1) {
      throw new RangeError(`a mask cannot hold the run (${count}, ${code})`);
    }
    for (let n = 0; n < count; n++) mask.push(reason);
  }
  return mask;
}

/** Tokens with loss mask 1, from the stored form. */
export const trainedTokens = (runs: readonly number[]): number =>
  runs.reduce((sum, count, index) => (index % 2 === 0 && runs[index + 1] === -1 ? sum + count : sum), 0);
