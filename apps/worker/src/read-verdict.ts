/**
 * The gate for what a verifier's own code gives, which an operator's plug-in may have written. Invariant: what passes has a finite reward,
 * parts that JSON can hold, and nothing else; a reward that is missing is told as missing, never as 0.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { RewardPart, Verdict } from "@rolldeck/contracts/ports/task";
import { readReward } from "@rolldeck/rl/read-reward";
import { z } from "zod";

const mostText = 200;

/** Null and NaN are missing, as in a reward; infinities are refused. */
const Part = z.union([
  z.number(),
  z.nan().transform(() => null),
  z.boolean().transform(Number),
  z.string().transform((text) => [...text].slice(0, mostText).join("")),
  z.null(),
]);

const Given = z.object({
  reward: z.unknown(),
  success: z.boolean(),
  parts: z.record(z.string(), Part.optional()).default({}),
  notes: z.string().nullish(),
  flags: z.array(z.string()).optional(),
});

/**
 * Rollouts of one run may have different parts: each keeps its own.
 * @param task named in the error, so that its author knows whose verifier to mend
 * @throws BoundaryError("verifier")
 */
export function readVerdict(value: unknown, task: string): Verdict {
  const given = Given.safeParse(value);
  if (!given.success) {
    const [issue] = given.error.issues;
    const where = issue?.path.join(".") || "its verdict";
    throw new BoundaryError("verifier", "bad_verdict", `the verifier of ${task}: ${where}: ${issue?.message}`, {
      cause: given.error,
    });
  }
  const { reward: asGiven, success, parts, notes, flags } = given.data;
  const reward = readReward(asGiven, task);
  if (reward === null) throw new BoundaryError("verifier", "no_reward", `the verifier of ${task} gave no reward`);
  const known = Object.entries(parts).filter((part): part is [string, RewardPart] => part[1] != null);
  return { reward, success, parts: Object.fromEntries(known), notes: notes ?? null, ...(flags && { flags }) };
}
