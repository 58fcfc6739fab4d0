/** Reward of a memory rollout: 1 for a right answer, else 0; right by normalised match or by a judge's word. */
import type { FinishedRollout, GradingScene, Verdict } from "@rolldeck/contracts/ports/task";
import { answerVerdict } from "../verifiers/answer-verdict.ts";
import { askJudge } from "../verifiers/ask-judge.ts";
import { exactMatch } from "../verifiers/exact-match.ts";

export const memoryVerifiers = ["exact", "judge"] as const;

export interface MemoryAnswers {
  readonly question: string;
  readonly answers: readonly string[];
  readonly verifier: (typeof memoryVerifiers)[number];
}

/** No answer is wrong without asking anyone. @throws BoundaryError("verifier") when a judge is needed and gives no clear word */
export async function verifyMemory(
  { question, answers, verifier }: MemoryAnswers,
  rollout: Pick<FinishedRollout, "finalAnswer">,
  scene: GradingScene,
): Promise<Verdict> {
  const answer = rollout.finalAnswer;
  const blank = answer === null || answer.trim() === "";
  // What matches word by word needs no judge.
  const matches = exactMatch(answer, answers);
  const success =
    matches || (verifier === "judge" && !blank && (await askJudge({ question, answer, accepted: answers }, scene)));
  return answerVerdict(success, answer, answers);
}
