/**
 * A row of a search question set, in the shapes of Search-R1 and its followers: the question and the accepted answers, which
 * lie in `golden_answers`, `answers`, `target`, or under a reward's ground truth. Nothing of it is changed; other fields are
 * left alone.
 */
import { z } from "zod";

const Answers = z.union([
  z.array(z.string().min(1)).min(1),
  z
    .string()
    .min(1)
    .transform((answer) => [answer]),
]);
const Reward = z.object({
  ground_truth: z.union([z.object({ target: Answers }).transform(({ target }) => target), Answers]),
});

export const SearchRow = z
  .object({
    question: z.string().min(1),
    golden_answers: Answers.optional(),
    answers: Answers.optional(),
    target: Answers.optional(),
    reward_model: Reward.optional(),
    reward_spec: Reward.optional(),
    data_source: z.string().nullish(),
  })
  .transform((row, refusal) => {
    const answers =
      row.golden_answers ??
      row.answers ??
      row.target ??
      row.reward_model?.ground_truth ??
      row.reward_spec?.ground_truth;
    if (answers !== undefined) return { question: row.question, answers, source: row.data_source ?? null };
    refusal.addIssue({ code: "custom", path: ["golden_answers"], message: "a row needs answers" });
    return z.NEVER;
  });
export type SearchRow = z.output<typeof SearchRow>;
