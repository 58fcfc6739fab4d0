/**
 * Lifecycle tables: every status change in the product is an edge of one of these, applied by compare-and-set together
 * with its event. Pure; no I/O.
 */
export const runStatuses = [
  "queued",
  "preparing",
  "running",
  "pausing",
  "paused",
  "stopping",
  "stopped",
  "completed",
  "failed",
] as const;
export type RunStatus = (typeof runStatuses)[number];

/** `preparing` covers the boot phases: model server up, model created, warm start, first version serving. */
export const runEdges: Record<RunStatus, readonly RunStatus[]> = {
  queued: ["preparing", "stopped", "failed"],
  preparing: ["running", "pausing", "stopping", "failed"],
  running: ["pausing", "stopping", "completed", "failed"],
  pausing: ["paused", "running", "stopping", "failed"],
  paused: ["queued", "running", "stopping"],
  stopping: ["stopped", "failed"],
  stopped: [],
  completed: [],
  failed: [],
};
export const endedRunStatuses: readonly RunStatus[] = ["stopped", "completed", "failed"];

export const stages = ["init", "run", "evaluate"] as const;
export type Stage = (typeof stages)[number];

/**
 * A rollout's place is (stage, state). `waiting`: no slot yet; `queued`: holds its slot lease, a job is on its way;
 * `active`: a worker holds the claim; `settled`: over, with one outcome.
 */
export const rolloutStates = ["waiting", "queued", "active", "settled"] as const;
export type RolloutState = (typeof rolloutStates)[number];

/** Edges inside one stage; moving to the next stage is active → waiting (or → queued when the slot is kept). */
export const rolloutEdges: Record<RolloutState, readonly RolloutState[]> = {
  waiting: ["queued", "settled"],
  queued: ["active", "queued", "waiting", "settled"],
  active: ["active", "waiting", "queued", "settled"],
  settled: [],
};

export const rolloutOutcomes = ["completed", "failed", "cancelled"] as const;
export type RolloutOutcome = (typeof rolloutOutcomes)[number];

export const stepStates = ["gathering", "updating", "done", "cancelled", "failed"] as const;
export type StepState = (typeof stepStates)[number];
export const stepEdges: Record<StepState, readonly StepState[]> = {
  // Evaluation steps have no update: gathering → done.
  gathering: ["updating", "done", "cancelled", "failed"],
  updating: ["done", "cancelled", "failed"],
  done: [],
  cancelled: [],
  failed: [],
};

/**
 * An ended evaluation may be taken up again for what it did not score. Edges of their own: no planner and no action takes them
 * but that one, and a training run has none.
 */
export const reopenEdges = {
  run: { stopped: "queued", completed: "queued", failed: "queued" },
  step: { done: "gathering", cancelled: "gathering", failed: "gathering" },
  /** Unscored rollouts only. */
  rollout: { settled: "waiting" },
} as const satisfies {
  readonly run: Partial<Record<RunStatus, RunStatus>>;
  readonly step: Partial<Record<StepState, StepState>>;
  readonly rollout: Partial<Record<RolloutState, RolloutState>>;
};

/** A training run that is over and is set back to one of its checkpoints. An edge of its own, as those above. */
export const restoreEdges = { stopped: "queued", completed: "queued", failed: "queued" } as const satisfies Partial<
  Record<RunStatus, RunStatus>
>;

/** How a run comes from its parent: it began with its weights, or holds what the parent made before it was set back. */
export const lineageRelations = ["fork", "superseded"] as const;
export type LineageRelation = (typeof lineageRelations)[number];

export const policyVersionStates = ["saving", "serving", "retired"] as const;
export type PolicyVersionState = (typeof policyVersionStates)[number];

/** Tells whether the table has the edge; callers turn a `false` into a ConflictError that names both ends. */
export function hasEdge<S extends string>(edges: Record<S, readonly S[]>, from: S, to: S): boolean {
  return edges[from].includes(to);
}

/** Statuses from which `to` may be reached: the `where status = any(…)` of a compare-and-set. */
export function sourcesOf<S extends string>(edges: Record<S, readonly S[]>, to: S): S[] {
  return (Object.keys(edges) as S[]).filter((from) => edges[from].includes(to));
}
