/** One rollout of a task through the real turn loop, tools, dialect and quickstart tokenizer, under a policy that writes text. */
import { fileURLToPath } from "node:url";
import { dialects } from "@rolldeck/agent/core/registry";
import { type RolloutEnd, runRollout } from "@rolldeck/agent/core/run-rollout";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Split, Task } from "@rolldeck/contracts/ports/task";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Segment, TurnRecord } from "@rolldeck/contracts/segments";
import { findTool } from "@rolldeck/tools/registry";

export interface Played {
  readonly end: RolloutEnd;
  readonly success: boolean;
  readonly turns: readonly TurnRecord[];
  /** In the order they were committed. */
  readonly segments: readonly Segment[];
  /** Tokens of the last prompt with its sample. */
  readonly tokens: number;
  readonly longestSample: number;
}

export const quickstartTokenizer = (): Promise<Tokenizer> =>
  loadTokenizer(fileURLToPath(new URL("../../../infra/models/quickstart", import.meta.url)));

export const toolSpecsOf = (task: Task): ToolSpec[] =>
  task.tools.map((name) => {
    const { description = "", parameters = {} } = findTool(name) ?? {};
    return { name, description, parameters };
  });

/** @param policy is given the prompt's text; what it writes is followed by the stop token */
export async function playRollout(scene: {
  readonly task: Task;
  readonly split: Split;
  readonly index: number;
  readonly agent: RunConfig["agent"];
  readonly tokenizer: Tokenizer;
  readonly policy: (prompt: string) => string;
}): Promise<Played> {
  const { task, agent, tokenizer, policy } = scene;
  const instance = task.instance(scene.split, scene.index);
  const { signal } = new AbortController();
  const turns: TurnRecord[] = [];
  const segments: Segment[] = [];
  let tokens = 0;
  let longestSample = 0;
  const end = await runRollout(
    {
      rolloutId: "r",
      seed: 1,
      messages: task.messages(instance),
      tools: toolSpecsOf(task),
      dialect: Object.entries(dialects).find(([name]) => name === agent.dialect)?.[1] ?? dialects.pythonic,
      tokenizer,
      agent,
      defaults: task.defaults,
      maxTurns: Math.min(agent.maxTurns, task.defaults.maxTurns),
      temperature: 1,
    },
    null,
    {
      sample: async ({ prompt }) => {
        const sampled = [...tokenizer.encode(policy(tokenizer.decode(prompt.toArray()))), ...tokenizer.stopTokens];
        tokens = prompt.length + sampled.length;
        longestSample = Math.max(longestSample, sampled.length);
        const logprobs = sampled.map(() => -1);
        return { tokens: sampled, logprobs, stopReason: "stop", policyVersion: 0, cacheHitTokens: 0 };
      },
      callTool: async (call, view, abort) => {
        const context = { instance: instance.state, agent: view, signal: abort, deadlineMs: 1000 };
        return (await findTool(call.name)?.call(call.arguments, context)) ?? { output: "" };
      },
      commitTurn: async (turn, own) => {
        turns.push(turn);
        segments.push(...own);
      },
      commitResults: async ({ segments: own }) => {
        segments.push(...own);
      },
      now: () => 0,
    },
    signal,
  );
  const { success } = await task.verify(instance, end, { signal, judge: null });
  return { end, success, turns, segments, tokens, longestSample };
}
