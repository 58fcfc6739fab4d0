/** Every task by its name. Adding one: its folder and a line here. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import type { Task } from "@rolldeck/contracts/ports/task";
import { keyChain } from "./key-chain/task.ts";

export const tasks = { "key-chain": keyChain } satisfies Record<string, Task>;
export type TaskName = keyof typeof tasks;
export const taskNames = Object.keys(tasks);

/** @throws NotFoundError: a run names a task that this server does not have (any more). */
export function getTask(name: string): Task {
  const task = Object.entries<Task>(tasks).find(([key]) => key === name)?.[1];
  if (!task) throw new NotFoundError("task", name);
  return task;
}
