/**
 * Turns → training rows, by exact token prefix. A row is a list of ranges over the trajectory's segments; the next turn
 * extends a row when its prompt begins with all of the row's tokens, else it starts a new row (a break: history was
 * dropped, re-rendered or forked). Invariants: every sampled token is a candidate for training in exactly one row; a
 * token that was sampled but is only context in a row is not trained there; nothing is re-encoded, so what lies between
 * two sampled spans is exactly what the next prompt held.
 */
import type { TokenRange, TurnRecord } from "@rolldeck/contracts/segments";
import {
  allTokens,
  checkRanges,
  dropTokens,
  joinRanges,
  positionsOf,
  rangesLength,
  segmentOffsets,
  type TrajectoryTokens,
} from "./trajectory-tokens.ts";

export interface PackedRow {
  readonly ranges: readonly TokenRange[];
  /** Turns whose sampled tokens this row trains, in order. */
  readonly turns: readonly number[];
  /** Row positions [start, end) of each of those turns' sampled tokens, in order. */
  readonly sampled: readonly TokenRange[];
}
export interface PackedTrajectory {
  readonly rows: readonly PackedRow[];
  /** Turns whose prompt did not continue the turn before: the drift meter. */
  readonly breaks: number;
}

interface OpenRow {
  ranges: TokenRange[];
  length: number;
  readonly turns: number[];
  readonly sampled: TokenRange[];
}

/** @throws RangeError when a turn has an empty prompt, a missing sampled segment, or ranges outside the trajectory */
export function packTrajectory(trajectory: TrajectoryTokens): PackedTrajectory {
  const tokens = allTokens(trajectory.segments);
  const offsets = segmentOffsets(trajectory.segments);
  const rows: OpenRow[] = [];
  let latest: OpenRow | null = null;
  let breaks = 0;
  for (const turn of trajectory.turns) {
    const sampled = sampledRange(turn, offsets, trajectory);
    const prompt = joinRanges(turn.promptRanges);
    checkRanges(prompt, tokens.length);
    if (prompt.length === 0) throw new RangeError(`turn ${turn.turn} has an empty prompt`);
    // Newest first: a plain agent always extends the row of the turn before, a fork goes back to an older one.
    let row = rows.findLast((candidate) => startsWith(tokens, prompt, candidate));
    if (latest !== null && row !== latest) breaks += 1;
    if (row === undefined) {
      row = { ranges: [], length: 0, turns: [], sampled: [] };
      rows.push(row);
    }
    extendRow(row, turn, prompt, sampled);
    latest = row;
  }
  return { rows: rows.map(({ ranges, turns, sampled }) => ({ ranges, turns, sampled })), breaks };
}

function extendRow(row: OpenRow, turn: TurnRecord, prompt: readonly TokenRange[], sampled: TokenRange): void {
  row.ranges = joinRanges([...row.ranges, ...dropTokens(prompt, row.length), sampled]);
  const start = rangesLength(prompt);
  row.length = start + sampled.end - sampled.start;
  row.turns.push(turn.turn);
  row.sampled.push({ start, end: row.length });
}

function sampledRange(turn: TurnRecord, offsets: readonly number[], trajectory: TrajectoryTokens): TokenRange {
  const start = offsets[turn.sampledSegment];
  const end = offsets[turn.sampledSegment + 1];
  if (start === undefined || end === undefined || trajectory.segments[turn.sampledSegment]?.origin !== "sampled") {
    throw new RangeError(`turn ${turn.turn} names segment ${turn.sampledSegment}, which is not a sampled segment`);
  }
  return { start, end };
}

/** Does the prompt begin with all of the row's tokens? Equal positions need no look at the tokens. */
function startsWith(tokens: readonly number[], prompt: readonly TokenRange[], row: OpenRow): boolean {
  const first = prompt[0];
  const only = row.ranges.length === 1 ? row.ranges[0] : undefined;
  if (only !== undefined && first !== undefined && only.start === first.start && only.end <= first.end) return true;
  if (rangesLength(prompt) < row.length) return false;
  const promptPositions = positionsOf(prompt);
  for (const position of positionsOf(row.ranges)) {
    const other = promptPositions.next();
    if (other.done === true || tokens[other.value] !== tokens[position]) return false;
  }
  return true;
}
