/** Reward of a search task: 1 for an answer that is one of the accepted ones, else 0. */
import type { Verdict } from "@rolldeck/contracts/ports/task";
import { answerVerdict } from "../verifiers/answer-verdict.ts";
import { exactMatch } from "../verifiers/exact-match.ts";

export const verifyAnswer = (given: string | null, accepted: readonly string[]): Verdict =>
  answerVerdict(exactMatch(given, accepted), given, accepted);
