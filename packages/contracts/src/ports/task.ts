/** A task: instructions, tools, verifier and where its instances come from. One folder each in packages/tasks. */

import type { Ending } from "../endings.ts";
import type { JsonObject } from "../segments.ts";
import type { Sandbox, TaskSandbox } from "./sandbox.ts";
import type { ChatMessage } from "./tokenizer.ts";
import type { ToolOutcome } from "./tool.ts";

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

/** A finite number, or a verifier's words. */
export type RewardPart = number | string;

/** A verifier's word. `reward` is finite; the numbers of `parts` add up to it, and all are shown. Rollouts may have different ones. */
export interface Verdict {
  readonly reward: number;
  readonly success: boolean;
  readonly parts: Readonly<Record<string, RewardPart>>;
  readonly notes: string | null;
  /** What the agent did that people should look at ("changed test files"); never part of the reward. */
  readonly flags?: readonly string[];
}

/** Evidence for people and for the verifier, kept whole or not at all. */
export interface NewEvidence {
  /** As `artifactNamePattern` has it; well-known ones are in `api/artifacts`. */
  readonly name: string;
  readonly mediaType: string;
  readonly content: Uint8Array;
  /** Bytes of all there was, where `content` is less. */
  readonly wholeBytes?: number;
}

/** What grading may use besides the rollout. */
export interface GradingScene {
  readonly signal: AbortSignal;
  /** A language model that judges answers; null where the operator configured none. */
  readonly judge: Judge | null;
  /** Present for tasks with a sandbox. */
  readonly sandboxes?: GradingSandboxes;
}
export interface GradingSandboxes {
  /**
   * A fresh sandbox as the task's `sandbox` says, or as this says; closed when grading ends, whatever happens.
   * @throws BoundaryError("sandbox")
   */
  open(spec?: TaskSandbox): Promise<Sandbox>;
  /** The agent's own, where the task grades in place. @throws BoundaryError("sandbox", "gone") */
  agent(): Promise<Sandbox>;
  /** What the run stage collected, exact bytes; null when it collected nothing of that name. */
  collected(name: string): Promise<Uint8Array | null>;
  /** Kept beside the rollout. A later one of the same name and grading takes its place. */
  keep(evidence: NewEvidence): Promise<void>;
}
export interface Judge {
  /**
   * The judge's words. @throws BoundaryError("verifier") when it gives none
   * @param onTokens told of each answer, how many tokens its server counted, read and written
   */
  ask(messages: readonly ChatMessage[], signal: AbortSignal, onTokens?: (tokens: number) => void): Promise<string>;
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
  /** What an instance's agent works in. Present when `sandbox` is not "none". Deterministic. */
  sandboxFor?(instance: TaskInstance): TaskSandbox;
  /** The verifier works in the agent's sandbox, which is kept until it has. Absent = a fresh one, of the verifier's own making. */
  readonly gradeInPlace?: boolean;
  /** Wall-clock milliseconds the agent has; what it left is graded. Absent = only the run's own limits. */
  maxRunMs?(instance: TaskInstance): number | null;
  /**
   * After opening, before the first model call. Runs again in a new sandbox when the rollout is tried again.
   * @throws BoundaryError("sandbox" | "infrastructure"): the agent has not had its turn
   */
  setUp?(instance: TaskInstance, sandbox: Sandbox, signal: AbortSignal): Promise<void>;
  /**
   * Asked when the agent's tool gave a final answer: what comes next in the same sandbox, in place of the call's outcome; null
   * when that was the last. `done` counts the answers before this one.
   */
  nextStep?(
    instance: TaskInstance,
    sandbox: Sandbox,
    step: { readonly done: number; readonly keep: GradingSandboxes["keep"]; readonly signal: AbortSignal },
  ): Promise<ToolOutcome | null>;
  /** What the verifier needs of the agent's sandbox, taken before it is closed. @throws BoundaryError("sandbox") */
  collect?(instance: TaskInstance, sandbox: Sandbox, signal: AbortSignal): Promise<readonly NewEvidence[]>;
  /** Under these a check of a data set opens the task, where whoever checks names no others. */
  readonly checkOptions?: JsonObject;
  /** Solves the instance as its author would, in the agent's sandbox: what `rolldeck task check` grades as the oracle. */
  solve?(instance: TaskInstance, sandbox: Sandbox, signal: AbortSignal): Promise<void>;
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
