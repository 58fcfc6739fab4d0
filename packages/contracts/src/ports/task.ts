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

/** What grading may use besides the rollout. */
export interface GradingScene {
  readonly signal: AbortSignal;
  /** A language model that judges answers; null where the operator configured none. */
  readonly judge: Judge | null;
}
export interface Judge {
  /** The judge's words. @throws BoundaryError("verifier") when it gives none */
  ask(messages: readonly ChatMessage[], signal: AbortSignal): Promise<string>;
}

/** Several calls in one turn: all in order, only the first, or none and the model is told to write one. */
export const callPolicies = ["all", "first", "refuse"] as const;
export type CallPolicy = (typeof callPolicies)[number];

/** What a run's task set says beyond the task's name; paths are resolved under the operator's roots before they come here. */
export interface TaskSource {
  /** Absolute path of the data set's file, or null. */
  readonly dataset: string | null;
  readonly options: JsonObject;
}

export interface Task {
  readonly name: string;
  readonly description: string;
  readonly sandbox: "none" | "process" | "image";
  /** Names in the tools registry. */
  readonly tools: readonly string[];
  readonly defaults: {
    readonly maxTurns: number;
    readonly maxContextTokens: number;
    /** Absent = all. */
    readonly callPolicy?: CallPolicy;
    /** Names in the agent's registry of hints; absent = none. */
    readonly hints?: readonly string[];
  };
  /**
   * The task over this data set with these options; absent on tasks that take neither.
   * @throws InputError that names the option, or the row of the file, and what is wrong with it
   */
  open?(source: TaskSource): Promise<Task>;
  /** Number of instances in a split; null when generated without end. */
  size(split: Split): number | null;
  /** Deterministic in (split, index). @throws RangeError past the end. */
  instance(split: Split, index: number): TaskInstance;
  messages(instance: TaskInstance): ChatMessage[];
  /** Path of the option, below its task set, by which the verifier asks a judge; absent = it does not. */
  readonly asksJudge?: string;
  /** @throws BoundaryError("verifier") when grading itself fails; never a silent 0. */
  verify(instance: TaskInstance, rollout: FinishedRollout, scene: GradingScene): Promise<Verdict>;
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
    /** The turn's tools restart the context from these messages: what follows is a training row of its own. */
    readonly restart?: readonly ChatMessage[];
  }[];
}
