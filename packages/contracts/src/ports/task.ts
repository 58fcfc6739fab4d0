/** A task: instructions, tools, verifier and where its instances come from. One folder each in packages/tasks. */

import type { Ending } from "../endings.ts";
import type { JsonObject } from "../segments.ts";
import type { ChatMessage } from "./tokenizer.ts";

export type Split = "train" | "evaluate";

export interface TaskInstance {
  /** Unique inside the task and split, stable across processes. */
  readonly instanceId: string;
  readonly split: Split;
  readonly index: number;
  /** What tools and verifier need; never shown to the model as such. */
  readonly state: JsonObject;
}

/** What the run stage collected for the verifier. */
export interface FinishedRollout {
  readonly ending: Ending;
  readonly finalAnswer: string | null;
  readonly turns: number;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: JsonObject; readonly failed: boolean }[];
}

/** A verifier's word. `reward` is finite; `parts` add up to it and are shown. */
export interface Verdict {
  readonly reward: number;
  readonly success: boolean;
  readonly parts: Readonly<Record<string, number>>;
  readonly notes: string | null;
}

export interface Task {
  readonly name: string;
  readonly description: string;
  readonly sandbox: "none" | "process" | "image";
  /** Names in the tools registry. */
  readonly tools: readonly string[];
  readonly defaults: { readonly maxTurns: number; readonly maxContextTokens: number };
  /** Number of instances in a split; null when generated without end. */
  size(split: Split): number | null;
  /** Deterministic in (split, index). @throws RangeError past the end. */
  instance(split: Split, index: number): TaskInstance;
  messages(instance: TaskInstance): ChatMessage[];
  /** @throws BoundaryError("verifier") when grading itself fails; never a silent 0. */
  verify(instance: TaskInstance, rollout: FinishedRollout): Promise<Verdict>;
  /** Supervised conversations for a warm start; assistant messages hold calls, not text. Deterministic in `seed`. */
  demonstrations?(seed: number, count: number): Demonstration[];
}

/** A conversation whose assistant turns are call lists; the dialect turns them into text. */
export interface Demonstration {
  readonly messages: readonly ChatMessage[];
  readonly turns: readonly {
    readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
    /** Tool outputs that follow, in call order; empty after the last turn. */
    readonly outputs: readonly string[];
  }[];
}
