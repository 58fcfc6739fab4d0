/** Every task by its name. Adding one: its folder and a line here. */
import type { Task } from "@rolldeck/contracts/ports/task";
import { harbor } from "./harbor/task.ts";
import { keyChain } from "./key-chain/task.ts";
import { memorySmall } from "./memory/small/task.ts";
import { memory } from "./memory/task.ts";
import { searchSmall } from "./search/small/task.ts";
import { search } from "./search/task.ts";
import { swe } from "./swe/task.ts";

export const tasks = {
  harbor,
  "key-chain": keyChain,
  memory,
  "memory-small": memorySmall,
  search,
  "search-small": searchSmall,
  swe,
} satisfies Record<string, Task>;
export type TaskName = keyof typeof tasks;
export const taskNames = Object.keys(tasks);
