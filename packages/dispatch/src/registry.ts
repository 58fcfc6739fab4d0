/** The dispatchers by the name a config gives them. */
import type { Dispatcher } from "./dispatcher.ts";
import { async } from "./dispatchers/async.ts";
import { batch } from "./dispatchers/batch.ts";
import { bounded } from "./dispatchers/bounded.ts";
import { fixedPool } from "./dispatchers/fixed-pool.ts";
import { pipeline } from "./dispatchers/pipeline.ts";
import { priority } from "./dispatchers/priority.ts";

export const dispatchers = {
  batch,
  bounded,
  pipeline,
  priority,
  "fixed-pool": fixedPool,
  async,
} satisfies Record<string, Dispatcher>;
export type DispatcherName = keyof typeof dispatchers;
export const dispatcherNames = Object.keys(dispatchers) as [DispatcherName, ...DispatcherName[]];

/** @returns undefined when no dispatcher has this name: launch refuses such a config */
export function dispatcherNamed(name: string): Dispatcher | undefined {
  const known: Readonly<Record<string, Dispatcher>> = dispatchers;
  return Object.hasOwn(known, name) ? known[name] : undefined;
}
