import { headWithin } from "@rolldeck/agent/core/cut-text";
import type { Verdict } from "@rolldeck/contracts/ports/task";

/** Reward of an answer: 1 when right, else 0 with what it was. @param accepted any of them is right; at least one */
export function answerVerdict(success: boolean, given: string | null, accepted: readonly string[]): Verdict {
  const reward = success ? 1 : 0;
  return { reward, success, parts: { answer: reward }, notes: success ? null : explain(given, accepted) };
}

function explain(given: string | null, accepted: readonly string[]): string {
  const wanted = accepted.slice(0, 3).map((answer) => JSON.stringify(headWithin(answer, 60)));
  const it = `it was ${wanted.join(" or ")}${accepted.length > wanted.length ? " or another" : ""}`;
  return given === null ? `no answer; ${it}` : `answered ${JSON.stringify(given.slice(0, 60))}; ${it}`;
}
