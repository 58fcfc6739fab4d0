/** What `rolldeck task check` says of a data set: one line of facts per instance, and whether it is good. */
import { z } from "zod";

export const checkStates = ["good", "no solution", "oracle failed", "no-op passed", "flaky", "broken"] as const;
export type CheckState = (typeof checkStates)[number];

const Side = z.object({
  /** Gradings that succeeded, of those that were made. */
  succeeded: z.int(),
  graded: z.int(),
  rewards: z.array(z.number()),
  durationMs: z.number(),
});
export const InstanceCheck = z.object({
  instanceId: z.string(),
  split: z.enum(["train", "evaluate"]),
  state: z.enum(checkStates),
  /** What it works in, for people. */
  image: z.string(),
  /** The author's solution; null where it could not be graded, or there is none. */
  oracle: Side.nullable(),
  /** Nothing was done; null where it could not be graded. */
  noOp: Side.nullable(),
  /** Why it is not good, or what is odd. */
  reason: z.string().nullable(),
  durationMs: z.number(),
});
export type InstanceCheck = z.infer<typeof InstanceCheck>;
export type CheckSide = z.infer<typeof Side>;

export const CheckReport = z.object({
  task: z.string(),
  instances: z.array(InstanceCheck),
  good: z.int(),
  /** Without a solution: their no-op fails, and nothing shows that they can be solved. */
  unsolved: z.int(),
  bad: z.int(),
  warnings: z.array(z.string()),
});
export type CheckReport = z.infer<typeof CheckReport>;

export const isBad = (state: CheckState): boolean => state !== "good" && state !== "no solution";

export const reportOf = (
  task: string,
  instances: readonly InstanceCheck[],
  warnings: readonly string[],
): CheckReport => ({
  task,
  instances: [...instances],
  good: instances.filter(({ state }) => state === "good").length,
  unsolved: instances.filter(({ state }) => state === "no solution").length,
  bad: instances.filter(({ state }) => isBad(state)).length,
  warnings: [...warnings],
});

/** Pure. @param trouble what kept it from being graded */
export function judge(
  oracle: CheckSide | null,
  noOp: CheckSide | null,
  trouble: string | null,
): { readonly state: CheckState; readonly reason: string | null } {
  if (noOp !== null && noOp.succeeded === noOp.graded) {
    return { state: "no-op passed", reason: `doing nothing succeeds (reward ${noOp.rewards.join(", ")})` };
  }
  if (noOp !== null && noOp.succeeded > 0) {
    return { state: "flaky", reason: `doing nothing: ${noOp.succeeded} of ${noOp.graded} gradings succeeded` };
  }
  if (trouble !== null) return { state: "broken", reason: trouble };
  if (oracle === null) return { state: "no solution", reason: "it brings no solution" };
  if (oracle.succeeded === 0) {
    return {
      state: "oracle failed",
      reason: `the author's solution does not succeed (reward ${oracle.rewards.join(", ")})`,
    };
  }
  if (oracle.succeeded < oracle.graded) {
    return {
      state: "flaky",
      reason: `the author's solution: ${oracle.succeeded} of ${oracle.graded} gradings succeeded`,
    };
  }
  return { state: "good", reason: null };
}
