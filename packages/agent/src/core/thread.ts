/**
 * One agent of a rollout: the rollout's own, or a sub-agent. Its state is a fold over what was committed of it, so that the
 * thread of a continued rollout is the thread that was lost. Holds the newest turn, counts and signs; never all turns.
 */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { TokenRange, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";
import { LoopWatch } from "./detect-loop.ts";
import type { EndedCall } from "./ended-call.ts";
import { GrowingPrompt } from "./growing-prompt.ts";
import type { History } from "./history.ts";
import { type CommittedTurn, resultsInOrder } from "./trajectory.ts";
import { Transcript } from "./transcript.ts";

/** What an agent is to do, and within which limits. */
export interface ThreadPlan {
  /** As `TurnRecord.thread`. */
  readonly id: string;
  /** 0 = the rollout's own agent. */
  readonly depth: number;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSpec[];
  readonly maxTurns: number;
}

export class Thread {
  readonly plan: ThreadPlan;
  readonly loop = new LoopWatch();
  readonly transcript: Transcript;
  /** Ended calls, oldest first. */
  readonly calls: EndedCall[] = [];
  /** The newest turn, with the results that are there. */
  last: CommittedTurn | null = null;
  /** What the newest turn led to is part of the prompt: the next turn may be sampled. */
  answered = true;
  turns = 0;
  /** Whole turns without a usable call, since the last one with calls. */
  callless = 0;
  /** Cut turns in a row. */
  cut = 0;
  /** Failed calls in a row of one tool, the newest included. */
  failures: { readonly name: string; readonly count: number } = { name: "", count: 0 };
  #prompt: GrowingPrompt | null = null;
  /** Ranges of the first prompt: changed contexts share what they have in common with it. */
  opening: readonly TokenRange[] = [];
  readonly #history: History;

  constructor(plan: ThreadPlan, history: History) {
    this.plan = plan;
    this.#history = history;
    this.transcript = new Transcript(plan.messages);
  }

  /** The next prompt; null before the first turn. */
  get prompt(): GrowingPrompt | null {
    return this.#prompt;
  }

  /** @param ranges all of the next prompt */
  setPrompt(ranges: readonly TokenRange[]): GrowingPrompt {
    this.#prompt = new GrowingPrompt(this.#history.tokens, ranges, () => this.transcript.messages());
    return this.#prompt;
  }

  /** The turn has been sampled; the prompt is not touched. @param words of a turn that was not cut and has no calls */
  addTurn(turn: TurnRecord, words: string | null): void {
    this.last = { ...turn, results: turn.calls.map(() => null) };
    this.answered = false;
    this.turns += 1;
    const cut = turn.stopReason === "length";
    this.cut = cut ? this.cut + 1 : 0;
    if (turn.calls.length > 0) this.callless = 0;
    else {
      if (!cut) this.callless += 1;
      this.loop.addWords(words);
    }
  }

  /** Some calls of the newest turn have ended. */
  addResults(results: readonly ToolResult[]): void {
    const last = this.last;
    if (last === null || results.length === 0) return;
    const given = (index: number) => results.find((result) => result.index === index);
    const before = resultsInOrder(last);
    this.last = { ...last, results: last.calls.map((call, place) => given(call.index) ?? before[place] ?? null) };
    for (const call of last.calls) {
      const result = given(call.index);
      if (result !== undefined) this.#count({ ...call, failed: result.error !== null });
    }
    if (!this.last.results.includes(null)) this.loop.addTurn(this.last);
  }

  /** The newest turn's answer is in the prompt. @param changed the context is another one now */
  close(changed: boolean): void {
    this.answered = true;
    if (changed) this.loop.reset();
  }

  #count({ name, arguments: given, failed }: EndedCall): void {
    this.calls.push({ name, arguments: given, failed });
    const before = this.failures.name === name ? this.failures.count : 0;
    this.failures = { name, count: failed ? before + 1 : 0 };
  }
}
