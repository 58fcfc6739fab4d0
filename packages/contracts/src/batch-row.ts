/**
 * The neutral form of what an update trains: one row of tokens with everything that was known of each, as numbers, so that any
 * trainer can take it and anybody can check it. `GET /api/v1/runs/{runId}/steps/{step}/batch` gives these, and the exporters of
 * `packages/rl` make other trainers' batches of them. Invariants: lists have one entry per token of the row; missing is null,
 * never 0; a trained token was sampled, has a finite logprob, and is never a row's first, which has no context.
 */
import { z } from "zod";
import { endingNames, maskReasons } from "./endings.ts";

const Logprobs = z.array(z.number().nullable());

const shape = {
  runId: z.string().describe("The run."),
  step: z.int().min(1).describe("The optimizer step that the row belongs to."),
  row: z.int().min(0).describe("Number of the row in its step, from 0."),
  groupId: z.string().describe("The group: rollouts of one task instance at this step, compared with each other."),
  task: z.string().describe("Name of the task set that the instance is from."),
  instanceId: z.string().describe("The task instance; unique in its task set only."),
  sample: z.int().min(0).describe("Which sample of the instance the rollout is, from 0."),
  rolloutId: z
    .string()
    .describe(
      "The rollout. It has several rows where its context was rewritten or forked; its rows lie beside each other.",
    ),
  attempt: z.int().min(1).describe("The attempt of the rollout that counted."),
  ending: z.enum(endingNames).describe("How the rollout ended."),
  reward: z
    .number()
    .nullable()
    .describe("The verifier's reward of the whole rollout; null: never scored, which is not 0."),
  advantage: z.number().describe("Advantage of every trained token of the row, before scale and token weights."),
  scale: z
    .number()
    .describe("1 ÷ the loss's denominator: what the loss, a sum over tokens, multiplies each term of this row by."),
  sent: z.boolean().describe("False: counted in its group, but given no forward pass, as nothing of it is trained."),
  learnerVersion: z.int().min(0).describe("Policy version that the step's update started from."),
  tokens: z.array(z.int().min(0)).min(1).describe("Token ids, prompt and everything after it."),
  mask: z
    .array(
      z.strictObject({
        count: z.int().min(1).describe("Tokens in a row with the same fate."),
        reason: z.enum(maskReasons).nullable().describe("Why they are not trained; null: they are trained."),
      }),
    )
    .describe("Spans that cover the row in order; after off-policy corrections where the run makes any."),
  samplerLogprobs: Logprobs.describe(
    "Natural-log probability of each token under the policy that sampled it; null: not sampled, or not told.",
  ),
  trainerLogprobs: Logprobs.nullable().describe(
    "The same by the trainer, before the update; null where it has none, and as a whole where it was not asked.",
  ),
  refLogprobs: Logprobs.nullable().describe("The same under the run's reference policy, for a KL term; null as above."),
  tokenWeights: z
    .array(z.number())
    .nullable()
    .describe(
      "Off-policy factors of the tokens' advantages, 0 where nothing is trained; null: the run corrects nothing.",
    ),
  policyVersions: z
    .array(z.int().min(0).nullable())
    .describe("Policy version that sampled each token; null: not sampled."),
};

/** What the lists owe each other is checked here and said in the descriptions: JSON Schema cannot say it. */
export const BatchRow = z.strictObject(shape).superRefine((row, context) => {
  const fault = (path: (string | number)[], message: string): void =>
    context.addIssue({ code: "custom", path, message });
  const length = row.tokens.length;
  const lists = ["samplerLogprobs", "trainerLogprobs", "refLogprobs", "tokenWeights", "policyVersions"] as const;
  for (const name of lists) {
    const list = row[name];
    if (list !== null && list.length !== length) fault([name], `has ${list.length} entries for ${length} tokens`);
  }
  const covered = row.mask.reduce((sum, { count }) => sum + count, 0);
  if (covered !== length) fault(["mask"], `covers ${covered} of ${length} tokens`);
  if (context.issues.length > 0) return;
  let place = 0;
  for (const { count, reason } of row.mask) {
    if (reason === null) trainedFaults(row, place, place + count, fault);
    place += count;
  }
});
export type BatchRow = z.infer<typeof BatchRow>;

function trainedFaults(
  row: Pick<z.infer<z.ZodObject<typeof shape>>, "samplerLogprobs" | "policyVersions">,
  start: number,
  end: number,
  fault: (path: (string | number)[], message: string) => void,
): void {
  if (start === 0) fault(["mask", 0], "the first token has no context and cannot be trained");
  for (let place = start; place < end; place++) {
    if (row.samplerLogprobs[place] === null) fault(["samplerLogprobs", place], "is null, but the token is trained");
    if (row.policyVersions[place] === null) fault(["policyVersions", place], "is null, but the token is trained");
  }
}

/** JSON Schema (2020-12) of a row; committed as docs/batch-row.schema.json. */
export const batchRowJsonSchema = (): Record<string, unknown> => ({
  title: "Rolldeck training row",
  ...z.toJSONSchema(BatchRow, { io: "output" }),
});

/** Tokens with loss mask 1, place by place. */
export const trainedMask = ({ mask }: Pick<BatchRow, "mask">): (0 | 1)[] =>
  mask.flatMap(({ count, reason }) => new Array<0 | 1>(count).fill(reason === null ? 1 : 0));
