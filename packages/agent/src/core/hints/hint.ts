/** What a hint may know: facts of the agent's newest turn. Pure; the same facts always give the same hint. */
import type { JsonObject } from "@rolldeck/contracts/segments";

export interface HintFacts {
  /** Turns the agent has taken, at least 1. */
  readonly turns: number;
  readonly maxTurns: number;
  /** Tokens of the next prompt, without hints. */
  readonly contextTokens: number;
  readonly maxContextTokens: number;
  /** Turns the agent is asked to take at least; 0 = off. */
  readonly earlyStepThreshold: number;
  /** Of the newest turn, with how they ended. */
  readonly calls: readonly {
    readonly name: string;
    readonly arguments: JsonObject;
    readonly error: { readonly code: string; readonly message: string } | null;
  }[];
  /** The newest turn held a call that could not be read, or none. */
  readonly unreadable: boolean;
  /** Failed calls in a row of one tool, up to the newest call. */
  readonly failures: { readonly name: string; readonly count: number };
  readonly toolNames: readonly string[];
  /** A call of the first tool as the dialect writes it; "" without tools. */
  readonly exampleCall: string;
}

/** What to do, in one or two sentences; null when there is nothing to say. */
export type Hint = (facts: HintFacts) => string | null;

/** How to end the work, where a tool does that. */
export const finishWith = ({ toolNames }: HintFacts): string =>
  toolNames.includes("finish") ? "call finish with your answer" : "give your answer";
