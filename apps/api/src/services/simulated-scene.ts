/** What a simulation takes for granted of a run where nobody said or saw anything. Pure. */
import { findBackend } from "@rolldeck/backends/registry";
import { type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";

/** Of stages that nobody has seen yet. */
export const assumed = { ms: { init: 5_000, run: 60_000, evaluate: 10_000 }, deviation: 0.5 };

/** Its updates and its sampling share their devices. */
export const isColocated = ({ backend }: RunConfig): boolean => findBackend(backend.name)?.overlap === false;

/** A pool that is not there is as large as the run's bounds ask for. */
export function sizesOf(pools: Readonly<Partial<ResourceCounts>>, { dispatcher }: RunConfig): ResourceCounts {
  const { init, run, evaluate } = dispatcher.bounds;
  const wanted = { sandbox: init + run + evaluate, initSlot: init, runSlot: run, gradeSlot: evaluate, gpu: 1 };
  for (const resource of resources) wanted[resource] = pools[resource] ?? wanted[resource];
  return wanted;
}
