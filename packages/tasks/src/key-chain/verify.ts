/** Reward of one rollout: the right answer counts 1, every lookup beyond those needed costs a little. */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import type { FinishedRollout, TaskInstance, Verdict } from "@rolldeck/contracts/ports/task";
import { instanceState } from "../instance-state.ts";
import { KeyChainState } from "./instances.ts";

/** Policies look up more than they need unless that costs something. */
export const extraLookupCost = 0.02;

/** @throws BoundaryError("verifier") when the instance is not a key chain's. */
export async function verifyKeyChain(instance: TaskInstance, rollout: FinishedRollout): Promise<Verdict> {
  const { answer, lookups } = instanceState(KeyChainState, instance, "not a key chain");
  const success = rollout.finalAnswer?.trim() === answer;
  const made = rollout.toolCalls.filter((call) => call.name === "get").length;
  const extra = Math.max(0, made - lookups);
  const parts = { answer: success ? 1 : 0, "extra lookups": extra === 0 ? 0 : -extraLookupCost * extra };
  return {
    reward: parts.answer + parts["extra lookups"],
    success,
    parts,
    notes: success ? null : explain(rollout.finalAnswer, answer),
  };
}

function explain(given: string | null, answer: string): string {
  if (given === null) return `no answer; it was ${answer}`;
  return `answered ${JSON.stringify(headWithin(given, 40))}; it was ${answer}`;
}
