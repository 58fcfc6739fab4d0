/** How an agent ends, decided from facts alone: limits, counts and loops; never from the model's words. */
import type { Ending } from "@rolldeck/contracts/endings";
import { readAnswer } from "./read-turn.ts";
import type { Rollout, RolloutSpec } from "./rollout.ts";
import type { Thread } from "./thread.ts";
import type { CommittedTurn } from "./trajectory.ts";

export interface ThreadEnd {
  readonly ending: Ending;
  readonly finalAnswer: string | null;
  readonly reason: string | null;
}

const end = (ending: Ending, reason: string | null = null): ThreadEnd => ({ ending, finalAnswer: null, reason });

/** After the newest turn, whose calls have ended; null = go on. */
export function verdict({ spec, history }: Rollout, thread: Thread): ThreadEnd | null {
  const { last, plan } = thread;
  if (last === null) return null;
  if (last.stopReason === "length") return verdictOnCut(spec, thread, last);
  if (plan.tools.length === 0) {
    const answer = readAnswer(spec, history.read([history.rangeOf(last.sampledSegment)]));
    return { ...end("answer"), finalAnswer: answer };
  }
  if (last.calls.length === 0 && thread.callless > spec.agent.parseRetries)
    return end("no_call", `${thread.callless} turns without a usable call`);
  const loop = thread.loop.reason;
  if (loop !== null) return end("loop", loop);
  return thread.turns >= plan.maxTurns ? end("turn_limit") : null;
}

function verdictOnCut(spec: RolloutSpec, thread: Thread, last: CommittedTurn): ThreadEnd | null {
  const used = last.promptTokens + last.sampledTokens;
  if (used >= spec.agent.maxContextTokens) return end("context_full", contextReason(spec, used));
  const { onLength, lengthRetries } = spec.agent;
  if (onLength === "end" || thread.cut > lengthRetries) {
    const again = thread.cut > 1 ? `, the ${thread.cut}th in a row` : "";
    return end("length", `turn ${last.turn} was cut after ${last.sampledTokens} tokens${again}`);
  }
  return thread.turns >= thread.plan.maxTurns ? end("turn_limit") : null;
}

export const contextReason = (spec: RolloutSpec, used: number): string =>
  `${used} of ${spec.agent.maxContextTokens} context tokens are used`;
