/** What storage and planner need to know about tasks without knowing tasks. @throws NotFoundError for an unknown name */
import type { Split, Task } from "@rolldeck/contracts/ports/task";
import { getTask } from "./registry.ts";

export const taskFacts = {
  /** Instances in a split; null = endless. */
  size: (task: string, split: Split): number | null => getTask(task).size(split),
  sandbox: (task: string): Task["sandbox"] => getTask(task).sandbox,
  instanceId: (task: string, split: Split, index: number): string => getTask(task).instance(split, index).instanceId,
};
