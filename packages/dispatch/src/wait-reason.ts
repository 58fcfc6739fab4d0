/** Why a rollout that waits is not admitted: a word for the page's filter, a sentence for people. */
import type { WaitCause } from "@rolldeck/contracts/api/schedule";
import type { Resource } from "@rolldeck/contracts/plan";

/** It lacks a lease. */
export type PoolCause = Extract<WaitCause, "grant" | "sandbox" | "init-slot" | "run-slot" | "grade-slot" | "gpu">;
/** The run itself, its settings or its model keep it back. */
export type OwnCause = Exclude<WaitCause, PoolCause>;

interface Told {
  readonly detail: string;
  /** When it is over at the latest, milliseconds of the database's clock; absent = nobody knows. */
  readonly until?: number;
}
export type WaitReason =
  | (Told & { readonly waitsFor: OwnCause; readonly resource?: undefined })
  | (Told & { readonly waitsFor: PoolCause; readonly resource: Resource });
