import type { AgentView } from "@rolldeck/contracts/ports/tool";
import type { RolloutSpec } from "./rollout.ts";
import type { Thread } from "./thread.ts";

/** What a tool may know of the agent that calls it. Its lists are made when they are asked for. */
export function agentView(spec: RolloutSpec, thread: Thread): AgentView {
  const { last, calls } = thread;
  const ended = calls.length;
  return {
    turn: Math.max(0, thread.turns - 1),
    maxTurns: thread.plan.maxTurns,
    contextTokens: last === null ? 0 : last.promptTokens + last.sampledTokens,
    maxContextTokens: spec.agent.maxContextTokens,
    get tools() {
      return thread.plan.tools.map(({ name }) => name);
    },
    get calls() {
      return calls.slice(0, ended);
    },
  };
}
