/** The dispatchers by the name a config gives them. */
import type { Dispatcher } from "./dispatcher.ts";
import { batch } from "./dispatchers/batch.ts";
import { bounded } from "./dispatchers/bounded.ts";
import { pipeline } from "./dispatchers/pipeline.ts";

export const dispatchers = { batch, bounded, pipeline } satisfies Record<string, Dispatcher>;
export type DispatcherName = keyof typeof dispatchers;
export const dispatcherNames = Object.keys(dispatchers) as [DispatcherName, ...DispatcherName[]];

/** @returns undefined when no dispatcher has this name: launch refuses such a config */
export function dispatcherNamed(name: string): Dispatcher | undefined {
  const known: Readonly<Record<string, Dispatcher>> = dispatchers;
  return Object.hasOwn(known, name) ? known[name] : undefined;
}
