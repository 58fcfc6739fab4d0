/**
 * Which train instances a run draws next. Invariant: the k-th train group drawn is entry k mod B of the instances of step
 * floor(k / B) + 1, whatever it was drawn for; so the order is one for a seed, and an epoch holds no instance twice.
 */
import type { NewGroup, RunSnapshot } from "@rolldeck/contracts/plan";
import { pickInstances } from "./pick-instances.ts";

/**
 * @param from groups drawn before, 0 for the first
 * @returns `count` groups, none when the task sets have no train instance
 */
export function drawGroups(
  { config, taskSizes }: Pick<RunSnapshot, "config" | "taskSizes">,
  from: number,
  count: number,
): NewGroup[] {
  const perStep = config.algorithm.groupsPerStep;
  const drawn: NewGroup[] = [];
  for (let at = from; at < from + count; ) {
    const step = pickInstances(config, taskSizes, Math.floor(at / perStep) + 1, "train");
    const part = step.slice(at % perStep, (at % perStep) + from + count - at);
    if (part.length === 0) break;
    drawn.push(...part);
    at += part.length;
  }
  return drawn;
}
