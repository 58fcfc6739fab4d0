/** What a rollout is given, what it may ask for, and how it ends. */
import type { Ending } from "@rolldeck/contracts/endings";
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { SampleRequest, SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { AgentView, Delegation, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Segment, ToolCall, TurnRecord, TurnResults } from "@rolldeck/contracts/segments";
import type { EndedCall } from "./ended-call.ts";
import type { History } from "./history.ts";
import type { CommittedTurn } from "./trajectory.ts";

export interface RolloutPorts {
  sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult>;
  /** Runs a call whose name is a tool's and whose arguments fit its schema. */
  callTool(call: ToolCall, agent: AgentView, signal: AbortSignal): Promise<ToolOutcome>;
  /** The work of a sub-agent where the call's tool hands it to one, else null. Pure: asked again when a rollout is continued. */
  delegate?(call: ToolCall, agent: AgentView): Delegation | null;
  /** Keeps the whole of an output that was cut for the model. Resolves when it is durable. */
  saveArtifact?(artifact: OutputArtifact): Promise<void>;
  /** Resolves when the turn is durable. */
  commitTurn(turn: TurnRecord, segments: Segment[]): Promise<void>;
  /** Resolves when the results of some of the turn's calls are durable; `segments` hold what the model will see next. */
  commitResults(results: TurnResults): Promise<void>;
  /** Milliseconds of any clock. */
  now(): number;
}
/** The text of one call's output, whole. */
export interface OutputArtifact {
  readonly turn: number;
  /** The call in its turn. */
  readonly index: number;
  readonly name: string;
  readonly text: string;
}

export interface RolloutSpec {
  readonly rolloutId: string;
  readonly seed: number;
  readonly messages: readonly ChatMessage[];
  /** None: the policy's text is its answer. */
  readonly tools: readonly ToolSpec[];
  readonly dialect: Dialect;
  readonly tokenizer: Tokenizer;
  readonly agent: RunConfig["agent"];
  /** What the task says where the run's config says nothing. */
  readonly defaults?: Pick<Task["defaults"], "callPolicy" | "hints">;
  /** Turns of the rollout's own agent; a sub-agent has its own limit. */
  readonly maxTurns: number;
  readonly temperature: number;
}

export interface RolloutEnd {
  readonly ending: Ending;
  readonly finalAnswer: string | null;
  /** Of all threads. */
  readonly turns: number;
  readonly toolCalls: readonly EndedCall[];
  /** For people; never decides anything. */
  readonly reason: string | null;
}

/** What the loop's parts share. */
export interface Rollout {
  readonly spec: RolloutSpec;
  readonly ports: RolloutPorts;
  readonly signal: AbortSignal;
  readonly history: History;
  /** Turns that an earlier worker committed, by thread; taken out when their thread has folded them in. */
  readonly stored: Map<string, readonly CommittedTurn[]>;
}
