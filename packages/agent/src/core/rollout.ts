/** What a rollout is given, what it may ask for, and how it ends. */
import type { Ending } from "@rolldeck/contracts/endings";
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { SampleRequest, SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { AgentView, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { JsonObject, Segment, ToolCall, TurnRecord, TurnResults } from "@rolldeck/contracts/segments";
import type { History } from "./history.ts";

export interface RolloutPorts {
  sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult>;
  /** Runs a call whose name is a tool's and whose arguments fit its schema. */
  callTool(call: ToolCall, agent: AgentView, signal: AbortSignal): Promise<ToolOutcome>;
  /** Resolves when the turn is durable. */
  commitTurn(turn: TurnRecord, segments: Segment[]): Promise<void>;
  /** Resolves when the results of some of the turn's calls are durable; `segments` hold what the model will see next. */
  commitResults(results: TurnResults): Promise<void>;
  /** Milliseconds of any clock. */
  now(): number;
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
  readonly maxTurns: number;
  readonly temperature: number;
}

export interface RolloutEnd {
  readonly ending: Ending;
  readonly finalAnswer: string | null;
  readonly turns: number;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: JsonObject; readonly failed: boolean }[];
  /** For people; never decides anything. */
  readonly reason: string | null;
}

/** What the loop's parts share. */
export interface Rollout {
  readonly spec: RolloutSpec;
  readonly ports: RolloutPorts;
  readonly signal: AbortSignal;
  readonly history: History;
}
