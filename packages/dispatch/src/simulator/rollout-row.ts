/** Rows of the simulated run: the planner's snapshots of rollouts, groups and steps, mutable, with what a simulation adds. */
import type { Ending } from "@rolldeck/contracts/endings";
import type {
  GroupSnapshot,
  NewGroup,
  NewLease,
  Purpose,
  Resource,
  RolloutSnapshot,
  StepSnapshot,
} from "@rolldeck/contracts/plan";
import type { RolloutKey } from "./rollout-work.ts";
import type { SimulatedSpan } from "./simulation.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export interface RolloutRow extends Mutable<Omit<RolloutSnapshot, "holds">> {
  holds: Resource[];
  leases: NewLease[];
  readonly group: GroupRow;
  readonly purpose: Purpose;
  /** Its init resets an environment that was idle. */
  resets: boolean;
  /** How its run stage ended: what a regrading goes back to. */
  runEnding: Ending | null;
  span: Mutable<SimulatedSpan>;
  /** Takes what is under way for it out of virtual time; null = nothing is. */
  abort: (() => void) | null;
  /** It waits, but its back-off is not over. */
  staysAway: boolean;
}
export interface GroupRow extends Mutable<GroupSnapshot> {
  readonly visit: number;
  readonly rollouts: RolloutRow[];
}
export interface StepRow extends Mutable<StepSnapshot> {
  updateAt: number | null;
  endedAt: number | null;
  /** Rollouts that its update trains. */
  readonly batch: RolloutRow[];
}

export interface NewGroupRow {
  readonly instance: NewGroup;
  readonly size: number;
  readonly replaces: string | null;
}

export const keyOf = ({ group, sample, attempt }: RolloutRow): RolloutKey => ({
  instance: group.instance,
  visit: group.visit,
  sample,
  attempt,
});
