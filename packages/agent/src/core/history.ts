/**
 * The rollout's working copy of its trajectory: append-only, ahead of storage by nothing but the write under way. Invariants:
 * segment index = position in the list; each token is held once, however many threads and prompts refer to it; nothing here
 * costs more for a longer past.
 */
import type {
  Segment,
  SegmentOrigin,
  TokenRange,
  ToolCall,
  ToolResult,
  TurnRecord,
} from "@rolldeck/contracts/segments";
import type { EndedCall } from "./ended-call.ts";
import { TokenList } from "./token-list.ts";
import { resultsInOrder, type Trajectory } from "./trajectory.ts";

/** A part of a prompt that lies in one segment. */
export interface Piece extends TokenRange {
  readonly origin: SegmentOrigin;
}

export class History {
  readonly tokens = new TokenList();
  /** Ended calls of all threads, in the order in which they ended. */
  readonly #ended: (EndedCall & { readonly turn: number; readonly index: number })[] = [];
  readonly #starts: number[] = [];
  readonly #origins: SegmentOrigin[] = [];
  /** Turns of all threads; the number of the next one. */
  turns = 0;
  /** The mismatch between the run's dialect and what the model writes is said once. */
  dialectNoted = false;

  constructor(resume: Trajectory | null) {
    for (const segment of resume?.segments ?? []) this.append(segment.origin, segment.tokens);
    for (const turn of resume?.turns ?? []) {
      this.addTurn(turn);
      this.addResults(turn, resultsInOrder(turn));
    }
  }

  get segments(): number {
    return this.#starts.length;
  }

  append(
    origin: SegmentOrigin,
    tokens: readonly number[],
    sampled?: Pick<Segment, "logprobs" | "policyVersion">,
  ): Segment {
    const { logprobs, policyVersion } = sampled ?? { logprobs: null, policyVersion: null };
    return { index: this.appendTokens(origin, tokens), origin, tokens, logprobs, policyVersion };
  }

  /** @returns the new segment's index */
  appendTokens(origin: SegmentOrigin, tokens: ArrayLike<number>): number {
    this.#starts.push(this.tokens.length);
    this.#origins.push(origin);
    this.tokens.push(tokens);
    return this.#starts.length - 1;
  }

  /** Takes back the newest segments, from this one on, that will not be committed: the next one gets the index. */
  takeBack(from: number): void {
    if (from >= this.segments) return;
    this.tokens.cutAt(this.rangeOf(from).start);
    this.#starts.length = from;
    this.#origins.length = from;
  }

  /** A segment that was not sampled, once more: nobody has to hold its tokens while a model call is under way. */
  segment(index: number): Segment {
    const tokens = this.read([this.rangeOf(index)]);
    return { index, origin: this.#origins[index] ?? "template", tokens, logprobs: null, policyVersion: null };
  }

  addTurn(turn: TurnRecord): void {
    this.turns += 1;
    if (turn.notes.some(({ kind }) => kind === "dialect")) this.dialectNoted = true;
  }

  addResults({ turn, calls }: { turn: number; calls: readonly ToolCall[] }, results: readonly (ToolResult | null)[]) {
    for (const result of results) {
      const call = calls.find(({ index }) => index === result?.index);
      if (call === undefined || result === null) continue;
      const { index, name, arguments: given } = call;
      this.#ended.push({ turn, index, name, arguments: given, failed: result.error !== null });
    }
  }

  /** In the order in which the model made them. */
  endedCalls(): EndedCall[] {
    return [...this.#ended]
      .sort((a, b) => a.turn - b.turn || a.index - b.index)
      .map(({ name, arguments: given, failed }) => ({ name, arguments: given, failed }));
  }

  rangeOf(segment: number): TokenRange {
    return { start: this.#starts[segment] ?? 0, end: this.#starts[segment + 1] ?? this.tokens.length };
  }

  rangesOf(segments: readonly Segment[]): TokenRange[] {
    return segments.map(({ index }) => this.rangeOf(index));
  }

  read(ranges: readonly TokenRange[]): number[] {
    return ranges.flatMap(({ start, end }) => this.tokens.slice(start, end));
  }

  /** What a turn said, to compare it with others; null where that does not count: it was cut, or its calls speak for it. */
  wordsOf({ stopReason, calls, sampledSegment }: TurnRecord): string | null {
    if (stopReason === "length" || calls.length > 0) return null;
    return this.read([this.rangeOf(sampledSegment)]).join(" ");
  }

  /** Everything after a segment. */
  after(segment: number): TokenRange {
    return { start: this.rangeOf(segment).end, end: this.tokens.length };
  }

  /** The ranges cut at segment borders, each part with its origin. */
  pieces(ranges: readonly TokenRange[]): Piece[] {
    return ranges.flatMap(({ start, end }) => {
      const pieces: Piece[] = [];
      for (let index = this.#segmentAt(start); index < this.segments; index++) {
        const own = this.rangeOf(index);
        if (own.start >= end) break;
        const piece = { start: Math.max(start, own.start), end: Math.min(end, own.end) };
        if (piece.start < piece.end) pieces.push({ origin: this.#origins[index] ?? "template", ...piece });
      }
      return pieces;
    });
  }

  /** A whole segment of this origin with exactly these tokens. */
  find(origin: SegmentOrigin, tokens: readonly number[]): TokenRange | null {
    for (let index = 0; index < this.segments; index++) {
      const { start, end } = this.rangeOf(index);
      if (this.#origins[index] !== origin || end - start !== tokens.length) continue;
      if (tokens.every((token, offset) => this.tokens.at(start + offset) === token)) return { start, end };
    }
    return null;
  }

  /** The segment that holds a position, by bisection. */
  #segmentAt(position: number): number {
    let low = 0;
    let high = this.segments;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= position) low = middle;
      else high = middle;
    }
    return low;
  }
}
