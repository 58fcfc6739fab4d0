/** A rollout without a model server: a scripted policy, tools as functions, and storage that keeps what was committed. */
import { readFileSync } from "node:fs";
import { AgentConfig } from "@rolldeck/contracts/agent-config";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { fixedPrompt, type SampleRequest, type SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { AgentView, Delegation, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { Segment, ToolCall, TurnRecord, TurnResults } from "@rolldeck/contracts/segments";
import { pythonic } from "../src/core/dialects/pythonic.ts";
import type { OutputArtifact, RolloutPorts, RolloutSpec } from "../src/core/rollout.ts";
import type { CommittedTurn, Trajectory } from "../src/core/trajectory.ts";

/** The quickstart model's folder, found from the repository root. */
export function quickstartFolder(): string {
  const root = new URL("../../../infra/models/quickstart/", import.meta.url);
  readFileSync(new URL("tokenizer.json", root));
  return root.pathname;
}

export const getAndFinish: readonly ToolSpec[] = [
  {
    name: "get",
    description: "Looks a key up",
    parameters: {
      type: "object",
      properties: { key: { type: "string" } },
      required: ["key"],
      additionalProperties: false,
    },
  },
  {
    name: "finish",
    description: "Ends the task with an answer",
    parameters: {
      type: "object",
      properties: { answer: { type: "string" } },
      required: ["answer"],
      additionalProperties: false,
    },
  },
];

type AgentInput = Parameters<typeof AgentConfig.parse>[0];

export function rolloutSpec(
  tokenizer: Tokenizer,
  agent: AgentInput = {},
  overrides: Partial<RolloutSpec> = {},
): RolloutSpec {
  const parsed = AgentConfig.parse({ describeTools: false, ...(agent as object) });
  return {
    rolloutId: "r1",
    seed: 7,
    messages: [{ role: "user", content: "find a" }],
    tools: getAndFinish,
    dialect: pythonic,
    tokenizer,
    agent: parsed,
    maxTurns: parsed.maxTurns,
    temperature: 1,
    ...overrides,
  };
}

/** What the policy says: text (its end token is added), or a whole answer. */
export type Said = string | ((request: SampleRequest) => SampleResult);

/** The answer of a server that sampled this text and then the end token. */
export function saying(tokenizer: Tokenizer, text: string, overrides: Partial<SampleResult> = {}): SampleResult {
  const tokens = [...tokenizer.encode(text), tokenizer.stopTokens[0] ?? 0];
  return {
    tokens,
    logprobs: tokens.map((_, t) => -0.01 * (t + 1)),
    stopReason: "stop",
    policyVersion: 3,
    cacheHitTokens: 0,
    ...overrides,
  };
}

export interface ScriptedRollout extends RolloutPorts {
  readonly requests: SampleRequest[];
  readonly toolCalls: ToolCall[];
  /** What each tool call could know of its agent. */
  readonly views: AgentView[];
  readonly artifacts: OutputArtifact[];
  /** In the order of the ports' calls: sample, tool, turn, results. */
  readonly log: string[];
  stored(): Trajectory;
}
export interface ScriptedOptions {
  readonly tokenizer: Tokenizer;
  /** By turn, or a function of the turn; past the script's end the last line repeats. */
  readonly policy: readonly Said[] | ((turn: number, request: SampleRequest) => string);
  readonly tools?: Readonly<Record<string, (call: ToolCall) => ToolOutcome>>;
  /** By tool name: the work of a sub-agent that takes the call. */
  readonly delegations?: Readonly<Record<string, (call: ToolCall, agent: AgentView) => Delegation>>;
  /** Requests keep the loop's own prompts, which go on growing, instead of what they were when sent. */
  readonly keepPrompts?: boolean;
  /** What was stored before. */
  readonly stored?: Trajectory | null;
  /** Throws in place of the commit with this number (from 0): the worker is lost before it. */
  readonly lostAtCommit?: number;
}

export class WorkerLost extends Error {}

const defaultTools: NonNullable<ScriptedOptions["tools"]> = {
  get: (call) => ({ output: `next after ${String(call.arguments.key)}` }),
  finish: (call) => ({ output: "done", finalAnswer: String(call.arguments.answer) }),
};

export function scriptedRollout(options: ScriptedOptions): ScriptedRollout {
  const { tokenizer, policy } = options;
  const tools = options.tools ?? defaultTools;
  const segments: Segment[] = [...(options.stored?.segments ?? [])];
  const turns: CommittedTurn[] = [...(options.stored?.turns ?? [])];
  const requests: SampleRequest[] = [];
  const toolCalls: ToolCall[] = [];
  const views: AgentView[] = [];
  const artifacts: OutputArtifact[] = [];
  const log: string[] = [];
  let commits = 0;
  let clock = 0;
  const store = (added: readonly Segment[]) => {
    for (const segment of added) {
      if (segment.index !== segments.length)
        throw new Error(`segment ${segment.index} where ${segments.length} is next`);
      segments.push(structuredClone(segment));
    }
  };
  const commit = (what: string) => {
    if (commits === options.lostAtCommit) throw new WorkerLost(what);
    commits += 1;
    log.push(what);
  };
  return {
    requests,
    toolCalls,
    views,
    artifacts,
    log,
    stored: () => structuredClone({ segments, turns }),
    now: () => clock++,
    sample: async (request) => {
      const turn = turns.length;
      requests.push(options.keepPrompts ? request : { ...request, prompt: fixedPrompt(request.prompt.toArray()) });
      log.push(`sample ${turn}`);
      const said =
        typeof policy === "function" ? policy(turn, request) : (policy[Math.min(turn, policy.length - 1)] ?? "");
      return typeof said === "string" ? cutAt(saying(tokenizer, said), request.maxTokens) : said(request);
    },
    delegate: (call, agent) => options.delegations?.[call.name]?.(call, agent) ?? null,
    saveArtifact: async (artifact) => {
      artifacts.push(artifact);
    },
    callTool: async (call, agent) => {
      toolCalls.push(call);
      views.push({ ...agent });
      log.push(`tool ${call.name}`);
      const tool = tools[call.name];
      if (tool === undefined) throw new Error(`the script has no tool ${call.name}`);
      return tool(call);
    },
    commitTurn: async (turn: TurnRecord, added: Segment[]) => {
      commit(`turn ${turn.turn}`);
      store(added);
      turns.push(structuredClone({ ...turn, results: turn.calls.map(() => null) }));
    },
    commitResults: async ({ turn, results, segments: added, nextRanges }: TurnResults) => {
      commit(`results ${turn}`);
      store(added);
      const stored = turns[turn];
      if (stored === undefined) throw new Error(`results of turn ${turn}, which is not stored`);
      const merged = stored.calls.map(
        (call, i) => results.find((result) => result.index === call.index) ?? stored.results[i] ?? null,
      );
      turns[turn] = structuredClone({ ...stored, results: merged, nextRanges: nextRanges ?? stored.nextRanges });
    },
  };
}

/** As a server does with `max_tokens`. */
const cutAt = (said: SampleResult, maxTokens: number): SampleResult =>
  said.tokens.length <= maxTokens
    ? said
    : {
        ...said,
        stopReason: "length",
        tokens: said.tokens.slice(0, maxTokens),
        logprobs: said.logprobs?.slice(0, maxTokens) ?? null,
      };
