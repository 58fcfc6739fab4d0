/** Reward of a search task: 1 for an answer that is one of the accepted ones, else 0. */
import type { Verdict } from "@rolldeck/contracts/ports/task";
import { exactMatch } from "../verifiers/exact-match.ts";

export function verifyAnswer(given: string | null, accepted: readonly string[]): Verdict {
  const success = exactMatch(given, accepted);
  const reward = success ? 1 : 0;
  return { reward, success, parts: { answer: reward }, notes: success ? null : explain(given, accepted) };
}

function explain(given: string | null, accepted: readonly string[]): string {
  const wanted = accepted.map((answer) => JSON.stringify(answer.slice(0, 60))).slice(0, 3);
  const it = `it was ${wanted.join(" or ")}${accepted.length > wanted.length ? " or another" : ""}`;
  return given === null ? `no answer; ${it}` : `answered ${JSON.stringify(given.slice(0, 60))}; ${it}`;
}
