/**
 * A plan becomes rows. Every action is a compare-and-set on what the snapshot showed, together with its events; what meets another row
 * is refused and the run is woken to plan again, so applying a plan twice, or two plans at once, does its work once. A plan of which
 * nothing but a full pool was met would come out the same again: it waits for room. Order: rollouts and
 * groups that leave free leases, steps that end make room for the next, admissions spend what is free, and the run itself moves last.
 */
import type { JobName, JobPayload } from "@rolldeck/contracts/jobs";
import type { Action, NewGroup, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type pg from "pg";
import { asBoundaryError } from "../database-error.ts";
import { addGroups } from "../hot/add-groups.ts";
import { type Admission, admitRollouts } from "../hot/admit-rollouts.ts";
import { beginUpdate } from "../hot/begin-update.ts";
import { createStep } from "../hot/create-step.ts";
import { moveRollouts, type PlannedMove } from "../hot/move-rollouts.ts";
import { endStep, redeliverUpdate } from "../hot/move-step.ts";
import type { NamedGroup } from "../hot/new-groups.ts";
import { setAsideGroups } from "../hot/set-aside.ts";
import { resendOnCollision } from "../resend-on-collision.ts";
import { moveRunFrom } from "../runs/move-run.ts";
import { noteOnRun } from "../runs/note-on-run.ts";
import { setRunLimit } from "../runs/set-run-limit.ts";
import { wakeRun } from "../runs/wake.ts";
import { queuePrepare } from "../training/queue-prepare.ts";

export type QueuedJob = { [N in JobName]: { readonly name: N; readonly payload: JobPayload<N> } }[JobName];
export interface InstanceFacts {
  instanceId(config: RunConfig, group: NewGroup): Promise<string>;
}
export interface Applied {
  /** To be enqueued now that the rows are committed. */
  readonly jobs: readonly QueuedJob[];
  readonly applied: number;
  /** Actions whose compare-and-set found another row than the snapshot's, or a full pool. The run was woken to plan again, if not `waits`. */
  readonly refused: number;
  /** All that was left of the plan are admissions that wait for room in a pool: idle environments, kept sandboxes. Nobody was woken. */
  readonly waits: boolean;
}

type Of<Do extends Action["do"]> = Extract<Action, { do: Do }>;
type Outcome = Pick<Applied, "jobs" | "applied"> & { readonly full?: number };

/** @throws BoundaryError("infrastructure") when the database is away; what was applied before stays */
export async function applyActions(
  pool: pg.Pool,
  snapshot: RunSnapshot,
  actions: readonly Action[],
  facts: InstanceFacts,
): Promise<Applied> {
  const of = <Do extends Action["do"]>(...kinds: Do[]): Of<Do>[] =>
    actions.filter((action): action is Of<Do> => kinds.some((kind) => kind === action.do));
  const parts: (() => Promise<Outcome>)[] = [
    () => prepare(pool, snapshot, of("prepare")),
    () => rollouts(pool, snapshot, of("settle", "retry", "regrade", "redeliver")),
    () => groupsSetAside(pool, snapshot, of("set-aside")),
    () => steps(pool, snapshot, of("begin-update", "redeliver-update", "end-step")),
    // After the updates that begin, which compare the number of groups drawn.
    () => moreGroups(pool, snapshot, of("add-groups"), facts),
    () => newSteps(pool, snapshot, of("create-step"), facts),
    () => runLimits(pool, snapshot, of("set-run-limit")),
    () => admissions(pool, snapshot, of("admit")),
    () => notes(pool, snapshot, of("note")),
    () => runMoves(pool, snapshot, of("move-run")),
  ];
  const outcomes: Outcome[] = [];
  try {
    for (const part of parts) outcomes.push(await resendOnCollision(part));
    const applied = outcomes.reduce((sum, outcome) => sum + outcome.applied, 0);
    const refused = actions.length - applied;
    const full = outcomes.reduce((sum, outcome) => sum + (outcome.full ?? 0), 0);
    const waits = applied === 0 && refused > 0 && refused === full;
    if (refused > 0 && !waits) await wakeRun(pool, snapshot.runId);
    return { jobs: outcomes.flatMap((outcome) => outcome.jobs), applied, refused, waits };
  } catch (cause) {
    throw asBoundaryError(cause, "the plan was not applied whole");
  }
}

async function prepare(pool: pg.Pool, { runId, status }: RunSnapshot, asked: Of<"prepare">[]): Promise<Outcome> {
  if (asked.length === 0 || !(await queuePrepare(pool, runId, status))) return { jobs: [], applied: 0 };
  return { jobs: [{ name: "prepare", payload: { runId } }], applied: asked.length };
}

async function rollouts(
  pool: pg.Pool,
  snapshot: RunSnapshot,
  asked: Of<"settle" | "retry" | "regrade" | "redeliver">[],
): Promise<Outcome> {
  const { runId } = snapshot;
  const seen = seenRows(snapshot);
  const moves = asked.flatMap((action): PlannedMove[] => {
    const row = seen.get(action.rolloutId);
    if (!row || row.attempt !== action.attempt) return [];
    const { do: move, rolloutId: _, attempt: __, ...rest } = action;
    return [{ move, seen: row, ...("stage" in rest ? {} : rest) }];
  });
  const made = await moveRollouts(pool, runId, moves);
  const jobs = made.filter(({ move }) => move === "redeliver").map(({ seen: row }) => stageJob(runId, row));
  return { jobs, applied: made.length };
}

const seenRows = (snapshot: RunSnapshot) => new Map(snapshot.rollouts.map((rollout) => [rollout.rolloutId, rollout]));

function stageJob(runId: string, of: Pick<RolloutSnapshot, "rolloutId" | "attempt" | "stage">): QueuedJob {
  const { rolloutId, attempt, stage } = of;
  const payload = { runId, rolloutId, attempt, stage };
  return stage === "run" ? { name: "run-stage", payload } : { name: "stage", payload };
}

async function groupsSetAside(pool: pg.Pool, { runId }: RunSnapshot, asked: Of<"set-aside">[]): Promise<Outcome> {
  const { made } = await setAsideGroups(pool, runId, asked);
  return { jobs: [], applied: made.length };
}

async function moreGroups(
  pool: pg.Pool,
  { runId, status, config }: RunSnapshot,
  asked: Of<"add-groups">[],
  facts: InstanceFacts,
): Promise<Outcome> {
  let applied = 0;
  for (const action of asked) {
    const groups = await named(config, action.groups, facts);
    if (await addGroups(pool, { ...action, runId, status, seed: config.seed, groups })) applied += 1;
  }
  return { jobs: [], applied };
}

async function steps(
  pool: pg.Pool,
  { runId, groupsDrawn }: RunSnapshot,
  asked: Of<"begin-update" | "redeliver-update" | "end-step">[],
): Promise<Outcome> {
  const jobs: QueuedJob[] = [];
  let applied = 0;
  const act = (action: (typeof asked)[number]): Promise<boolean> => {
    const { stepId } = action;
    if (action.do === "end-step") return endStep(pool, runId, action);
    if (action.do === "redeliver-update") return redeliverUpdate(pool, runId, stepId);
    return beginUpdate(pool, { runId, stepId, drawn: groupsDrawn ?? 0, leave: action.leave ?? null });
  };
  for (const action of asked) {
    if (!(await act(action))) continue;
    applied += 1;
    if (action.do !== "end-step") jobs.push({ name: "update", payload: { runId, stepId: action.stepId } });
  }
  return { jobs, applied };
}

async function newSteps(
  pool: pg.Pool,
  { runId, status, config, groupsDrawn }: RunSnapshot,
  asked: Of<"create-step">[],
  facts: InstanceFacts,
): Promise<Outcome> {
  let applied = 0;
  for (const action of asked) {
    const groups = await named(config, action.groups, facts);
    const step = { ...action, runId, status, drawn: groupsDrawn ?? 0, seed: config.seed, groups };
    if (await createStep(pool, step)) applied += 1;
  }
  return { jobs: [], applied };
}

async function named<G extends NewGroup>(
  config: RunConfig,
  groups: readonly G[],
  facts: InstanceFacts,
): Promise<(G & NamedGroup)[]> {
  const found: (G & NamedGroup)[] = [];
  for (const group of groups) {
    const task = config.taskSets[group.taskSet]?.name ?? "";
    found.push({ ...group, task, instanceId: await facts.instanceId(config, group) });
  }
  return found;
}

async function runLimits(pool: pg.Pool, { runId }: RunSnapshot, asked: Of<"set-run-limit">[]): Promise<Outcome> {
  let applied = 0;
  for (const action of asked) if (await setRunLimit(pool, runId, action)) applied += 1;
  return { jobs: [], applied };
}

async function admissions(pool: pg.Pool, snapshot: RunSnapshot, asked: Of<"admit">[]): Promise<Outcome> {
  const seen = seenRows(snapshot);
  const wanted = asked.flatMap((action): Admission[] => {
    const row = seen.get(action.rolloutId);
    return row && row.attempt === action.attempt ? [{ seen: row, stage: action.stage, leases: action.leases }] : [];
  });
  const { made, full } = await admitRollouts(pool, snapshot, wanted);
  return {
    full,
    jobs: made.map(({ seen: row, stage }) => stageJob(snapshot.runId, { ...row, stage })),
    applied: made.length,
  };
}

async function notes(pool: pg.Pool, { runId }: RunSnapshot, asked: Of<"note">[]): Promise<Outcome> {
  if (asked.length > 0) await noteOnRun(pool, runId, asked);
  return { jobs: [], applied: asked.length };
}

async function runMoves(pool: pg.Pool, { runId }: RunSnapshot, asked: Of<"move-run">[]): Promise<Outcome> {
  let applied = 0;
  for (const action of asked) if (await moveRunFrom(pool, runId, action)) applied += 1;
  return { jobs: [], applied };
}
