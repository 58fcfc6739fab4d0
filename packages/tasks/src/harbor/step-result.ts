/**
 * Results of the steps of a task, and the verdict over them. Pure. Mean = over the steps that were graded, a key that a step did not
 * write counts as 0; final = the last graded step's. Invariant: a task of which no step was graded has no verdict.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Verdict } from "@rolldeck/contracts/ports/task";
import { z } from "zod";
import { type Rewards, rewardOf } from "./reward-file.ts";
import type { TaskFile } from "./task-file.ts";

/** Kept as `step-<n>.json`, n from 1, when the agent goes on to the next step or may not. */
export const StepResult = z.object({
  version: z.literal(1),
  step: z.string(),
  /** Null: its artifacts were collected, its verifier runs at the end: a separate one, or one that could not do its work yet. */
  rewards: z.record(z.string(), z.number()).nullable(),
  /** It was below the step's min_reward, or could not be graded: the steps after it are not run. */
  stopped: z.boolean(),
  flags: z.array(z.string()),
});
export type StepResult = z.infer<typeof StepResult>;

export const stepResultName = (index: number): string => `step-${index + 1}.json`;

/** Of the names of what a step left that the agent went on after. */
export const stepPrefix = (index: number): string => `step-${index + 1}-`;

/** Why the steps after this one are not run; null when they are. */
export function belowMinReward(rewards: Rewards, minReward: Readonly<Record<string, number>> | null): string | null {
  for (const [key, least] of Object.entries(minReward ?? {})) {
    const actual = Object.hasOwn(rewards, key) ? rewards[key] : undefined;
    if (actual === undefined) return `no ${key}, at least ${least} is asked`;
    if (actual < least) return `${key} ${actual}, at least ${least} is asked`;
  }
  return null;
}

export interface GradedStep {
  readonly name: string;
  readonly rewards: Rewards;
  readonly flags: readonly string[];
}

export interface RewardChoice {
  readonly rewardKey: string;
  /** From here on the task counts as solved. */
  readonly successReward: number;
}

/**
 * @param stopped the last graded step was below its min_reward: the steps after it don't count. Without that the agent gave up
 *   before them, and each counts as 0
 * @throws BoundaryError("verifier", "no_reward")
 */
export function verdictOf(
  file: Pick<TaskFile, "multiStep" | "rewardStrategy" | "steps">,
  graded: readonly GradedStep[],
  stopped: boolean,
  choice: RewardChoice,
): Verdict {
  const last = graded.at(-1);
  if (last === undefined) throw new BoundaryError("verifier", "no_reward", "no step was graded");
  const flags = [...new Set(graded.flatMap((step) => step.flags))];
  const key = choice.rewardKey;
  if (!file.multiStep) {
    const reward = rewardOf(last.rewards, key);
    return { reward, success: reward >= choice.successReward, parts: { [key]: reward }, notes: null, flags };
  }
  // No step that wrote the key: the verifiers speak of something else.
  if (graded.every(({ rewards }) => !Object.hasOwn(rewards, key))) rewardOf(last.rewards, key);
  const values = new Map(graded.map(({ name, rewards }) => [name, rewards[key] ?? 0]));
  const counted = stopped ? graded.map(({ name }) => name) : file.steps.map(({ name }) => name ?? "");
  const parts =
    file.rewardStrategy === "final"
      ? Object.fromEntries(counted.slice(-1).map((name) => [name, values.get(name) ?? 0]))
      : Object.fromEntries(counted.map((name) => [name, (values.get(name) ?? 0) / counted.length]));
  const reward = Object.values(parts).reduce((sum, part) => sum + part, 0);
  const whole = graded.length === file.steps.length;
  // A mean of ones is one, whatever thirds add up to.
  const success = whole && reward >= choice.successReward - 1e-9;
  return { reward, success, parts, notes: stepNotes(values, file.steps.length, stopped), flags };
}

function stepNotes(values: ReadonlyMap<string, number>, steps: number, stopped: boolean): string {
  const each = [...values].map(([name, value]) => `${name} ${value}`).join(", ");
  if (values.size === steps) return each;
  const why = stopped ? "not run: the last was below its min_reward" : "not reached, each counts as 0";
  return `${each}; ${steps - values.size} of ${steps} steps ${why}`;
}
