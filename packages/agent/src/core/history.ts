/**
 * The rollout's working copy of its trajectory: append-only, ahead of storage by nothing but the write under way.
 * Invariants: segment index = position in the list; a turn's prompt = the prompt before + what was sampled + what followed.
 */
import type { Segment, SegmentOrigin, TokenRange, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";
import { type CommittedTurn, joinRanges, type Trajectory } from "./trajectory.ts";

export class History {
  readonly segments: Segment[];
  readonly turns: CommittedTurn[];
  private readonly tokens: number[];

  constructor(resume: Trajectory | null) {
    this.segments = [...(resume?.segments ?? [])];
    this.turns = [...(resume?.turns ?? [])];
    this.tokens = this.segments.flatMap((segment) => [...segment.tokens]);
  }

  get lastTurn(): CommittedTurn | null {
    return this.turns.at(-1) ?? null;
  }

  append(
    origin: SegmentOrigin,
    tokens: readonly number[],
    sampled?: Pick<Segment, "logprobs" | "policyVersion">,
  ): Segment {
    const { logprobs, policyVersion } = sampled ?? { logprobs: null, policyVersion: null };
    const segment: Segment = { index: this.segments.length, origin, tokens, logprobs, policyVersion };
    this.segments.push(segment);
    for (const token of tokens) this.tokens.push(token);
    return segment;
  }

  addTurn(turn: TurnRecord): void {
    this.turns.push({ ...turn, results: turn.calls.map(() => null) });
  }

  addResults(results: readonly ToolResult[]): void {
    const last = this.lastTurn;
    if (last === null) return;
    const given = (index: number) => results.find((result) => result.index === index);
    const merged = last.calls.map(
      (call) => given(call.index) ?? last.results.find((result) => result?.index === call.index) ?? null,
    );
    this.turns[this.turns.length - 1] = { ...last, results: merged };
  }

  /** Ranges of the next prompt: everything the last turn saw, sampled and was answered. */
  nextPromptRanges(): TokenRange[] {
    const last = this.lastTurn;
    if (last === null) return joinRanges([{ start: 0, end: this.tokens.length }]);
    return joinRanges([...last.promptRanges, { start: this.offsetOf(last.sampledSegment), end: this.tokens.length }]);
  }

  read(ranges: readonly TokenRange[]): number[] {
    return ranges.flatMap(({ start, end }) => this.tokens.slice(start, end));
  }

  /** Whether something follows the last turn's sample: its calls are over and the next prompt is complete. */
  get answered(): boolean {
    const last = this.lastTurn;
    return last !== null && this.segments.length > last.sampledSegment + 1;
  }

  sampledTokens(turn: TurnRecord): readonly number[] {
    return this.segments[turn.sampledSegment]?.tokens ?? [];
  }

  private offsetOf(segment: number): number {
    return this.segments.slice(0, segment).reduce((sum, { tokens }) => sum + tokens.length, 0);
  }
}
