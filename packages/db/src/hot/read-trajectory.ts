import type { Segment, ToolResult, TurnRecord } from "@rolldeck/contracts/segments";
import type pg from "pg";

/** A turn with what its calls gave back, in call order; null = started, not ended. */
export type CommittedTurn = TurnRecord & { readonly results: readonly (ToolResult | null)[] };
/** What one attempt of a rollout has committed. */
export interface Trajectory {
  readonly segments: readonly Segment[];
  readonly turns: readonly CommittedTurn[];
}

export function readTrajectory(_pool: pg.Pool, _rolloutId: string, _attempt: number): Promise<Trajectory> {
  return Promise.reject(new Error("under construction"));
}
