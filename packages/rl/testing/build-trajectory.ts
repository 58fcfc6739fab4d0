/** Trajectories for tests, written as what each turn saw and sampled. */
import type { Segment, SegmentOrigin, TokenRange, TurnRecord } from "@rolldeck/contracts/segments";
import type { TrajectoryTokens } from "../src/trajectory-tokens.ts";

export const segment = (
  index: number,
  origin: SegmentOrigin,
  tokens: readonly number[],
  logprobs: readonly number[] | null = null,
): Segment => ({ index, origin, tokens, logprobs, policyVersion: origin === "sampled" ? 1 : null });

export const turnRecord = (
  turn: number,
  sampledSegment: number,
  promptRanges: readonly TokenRange[],
  overrides: Partial<TurnRecord> = {},
): TurnRecord => ({
  turn,
  promptRanges,
  thread: "",
  notes: [],
  nextRanges: null,
  promptTokens: promptRanges.reduce((sum, range) => sum + range.end - range.start, 0),
  sampledSegment,
  sampledTokens: 0,
  stopReason: "stop",
  policyVersion: 1,
  cacheHitTokens: 0,
  sampleMs: 1,
  parseError: null,
  calls: [],
  ...overrides,
});

export interface WrittenTurn {
  /** Whole prompt of the turn; what continues the history so far is stored once, the rest as a new segment. */
  readonly prompt: readonly number[];
  readonly sampled: readonly number[];
  readonly logprobs?: readonly number[] | null;
  readonly parseError?: string;
}

/** A plain agent's trajectory: a prompt that extends the history refers to it, any other is stored whole. */
export function buildTrajectory(turns: readonly WrittenTurn[]): TrajectoryTokens {
  const segments: Segment[] = [];
  const records: TurnRecord[] = [];
  let history: number[] = [];
  let ranges: TokenRange[] = [];
  let length = 0;
  const push = (origin: SegmentOrigin, tokens: readonly number[], logprobs: readonly number[] | null): TokenRange => {
    segments.push(segment(segments.length, origin, tokens, logprobs));
    length += tokens.length;
    return { start: length - tokens.length, end: length };
  };
  turns.forEach((turn, index) => {
    const continues = history.length > 0 && history.every((token, t) => token === turn.prompt[t]);
    const added = continues ? turn.prompt.slice(history.length) : turn.prompt;
    const origin = records.length === 0 ? "template" : "observation";
    if (!continues) ranges = [];
    if (added.length > 0) ranges = [...ranges, push(origin, added, null)];
    const promptRanges = ranges;
    const logprobs = turn.logprobs === undefined ? turn.sampled.map((_, t) => -0.1 * (t + 1)) : turn.logprobs;
    ranges = [...ranges, push("sampled", turn.sampled, logprobs)];
    history = [...turn.prompt, ...turn.sampled];
    records.push(
      turnRecord(index, segments.length - 1, promptRanges, {
        sampledTokens: turn.sampled.length,
        parseError: turn.parseError ?? null,
      }),
    );
  });
  return { segments, turns: records };
}
