/**
 * The run's rows in memory: what the database would hold. They are the planner's snapshot too, so nothing is copied for a plan.
 * Invariants: `held` and the tallies say at any moment what a count over the rows would; every row changes through this class
 * or the two that act on it (actions and workers).
 */
import type { Ending } from "@rolldeck/contracts/endings";
import type { RolloutOutcome, RunStatus, Stage } from "@rolldeck/contracts/lifecycle";
import {
  type EngineLoad,
  type NewLease,
  type Purpose,
  type Resource,
  type RunLimit,
  type RunSnapshot,
  resources,
} from "@rolldeck/contracts/plan";
import { isOpen } from "../facts.ts";
import { dispatcherNamed } from "../registry.ts";
import type { GroupRow, NewGroupRow, RolloutRow, StepRow } from "./rollout-row.ts";
import type { SimulatedSpan } from "./simulation.ts";
import type { SimulationInput } from "./simulation-input.ts";
import type { Tally } from "./tally.ts";

const bootId = "simulated";
const startMs = 60_000;
/** Leases of the living never end here: nobody is lost but by the failures that the input asks for. */
export const endlessLease = Number.POSITIVE_INFINITY;

export class RunRows {
  readonly input: SimulationInput;
  status: RunStatus = "running";
  reason: string | null = null;
  servingVersion = 0;
  sampledTokens = 0;
  groupsDrawn = 0;
  runLimit: RunLimit | null = null;
  engine: EngineLoad | null = null;
  /** Environments that are open and that no rollout has; they keep no place in the pool, as if the sweep closed them whenever one is missing. */
  idleEnvironments = 0;
  readonly steps: StepRow[] = [];
  readonly groups = new Map<string, GroupRow>();
  readonly rollouts = new Map<string, RolloutRow>();
  readonly spans: SimulatedSpan[] = [];
  readonly held: Record<Resource, number> = { sandbox: 0, initSlot: 0, runSlot: 0, gradeSlot: 0, gpu: 0 };
  readonly tally: Tally;
  /** Trained groups by staleness. */
  readonly staleness: number[] = [];
  readonly starts: number[] = [];
  readonly #keepsEnvironments: boolean;
  readonly #visits = new Map<string, number>();
  #open: { readonly rollouts: RolloutRow[]; readonly groups: GroupRow[] } | null = null;

  constructor(input: SimulationInput, tally: Tally) {
    this.input = input;
    this.tally = tally;
    const { name, bounds } = input.config.dispatcher;
    this.#keepsEnvironments = dispatcherNamed(name)?.keepsEnvironments === true;
    if (this.#keepsEnvironments && input.environmentsOpen === true) this.idleEnvironments = bounds.run;
  }

  /** The rows themselves, as of `now`: to be read before anything else moves. */
  snapshot(now: number): RunSnapshot {
    const { config, taskSizes, taskSandboxes, gradedInPlace } = this.input;
    const { rollouts, groups } = this.#openRows();
    while (this.starts[0] !== undefined && this.starts[0] <= now - startMs) this.starts.shift();
    return {
      now,
      runId: "simulated",
      status: this.status,
      config,
      servingVersion: this.servingVersion,
      modelBootId: bootId,
      backendBootId: bootId,
      prepareLeaseUntil: null,
      prepareFailures: 0,
      startedAt: 0,
      sampledTokens: this.sampledTokens,
      taskSizes,
      taskSandboxes,
      ...(gradedInPlace ? { gradedInPlace } : {}),
      steps: this.steps,
      rollouts,
      batchRequests: [],
      trainerLeaseUntil: null,
      held: this.held,
      groups,
      groupsDrawn: this.groupsDrawn,
      recentStarts: this.starts,
      engine: this.engine,
      runLimit: this.runLimit,
      draining: false,
    };
  }

  #openRows() {
    if (this.#open !== null) return this.#open;
    const open = new Set(this.steps.filter(isOpen).map(({ stepId }) => stepId));
    this.#open = {
      rollouts: [...this.rollouts.values()].filter(({ stepId }) => open.has(stepId)),
      groups: [...this.groups.values()].filter(({ stepId }) => open.has(stepId)),
    };
    return this.#open;
  }

  stepNamed(stepId: string): StepRow | undefined {
    return this.steps.find((step) => step.stepId === stepId);
  }

  groupsOf(stepId: string): GroupRow[] {
    return this.#openRows().groups.filter((group) => group.stepId === stepId);
  }

  addStep(purpose: Purpose, step: number, now: number): StepRow {
    const row: StepRow = {
      stepId: `${purpose}-${step}`,
      purpose,
      step,
      state: "gathering",
      source: "planned",
      createdAt: now,
      updateLeaseUntil: null,
      updateFailures: 0,
      updateAt: null,
      endedAt: null,
      batch: [],
    };
    this.steps.push(row);
    this.#open = null;
    return row;
  }

  moveStep(step: StepRow, state: StepRow["state"], now: number): void {
    step.state = state;
    if (state === "updating") step.updateAt = now;
    else step.endedAt = now;
    this.#open = null;
  }

  moveGroup(group: GroupRow, stepId: string): void {
    group.stepId = stepId;
    for (const rollout of group.rollouts) rollout.stepId = stepId;
  }

  addGroup(step: StepRow, { instance, size, replaces }: NewGroupRow, now: number): void {
    const key = `${instance.taskSet}:${instance.split}:${instance.instanceIndex}`;
    const visit = this.#visits.get(key) ?? 0;
    this.#visits.set(key, visit + 1);
    const groupId = `group-${this.groups.size}`;
    const expectedMs = this.input.expected?.(instance) ?? null;
    const { stepId, purpose } = step;
    const group: GroupRow = {
      ...{ groupId, stepId, instance, visit, replaces, expectedMs },
      setAside: null,
      held: false,
      rollouts: [],
    };
    this.groups.set(groupId, group);
    for (let sample = 0; sample < size; sample++) group.rollouts.push(this.#addRollout(group, purpose, sample, now));
    if (purpose === "train") this.groupsDrawn += 1;
    this.#open = null;
  }

  #addRollout(group: GroupRow, purpose: Purpose, sample: number, now: number): RolloutRow {
    const rolloutId = `${group.groupId}-${sample}`;
    const { stepId, groupId, instance } = group;
    // One literal: rows of one hidden shape are what makes thousands of plans over them fast.
    const row: RolloutRow = {
      rolloutId,
      stepId,
      groupId,
      taskSet: instance.taskSet,
      sample,
      attempt: 1,
      stage: "init",
      state: "waiting",
      claim: 0,
      deliveries: 0,
      leaseUntil: null,
      notBefore: null,
      readyAt: now,
      stageStartedAt: null,
      ending: null,
      reason: null,
      outcome: null,
      reward: null,
      infrastructureFailures: 0,
      evaluateFailures: 0,
      firstVersion: null,
      settledAt: null,
      held: false,
      holds: [],
      leases: [],
      group,
      purpose,
      resets: false,
      runEnding: null,
      abort: null,
      staysAway: false,
      span: { rolloutId, instance, sample, attempt: 1, stage: "init", readyAt: now, startedAt: null, endedAt: null },
    };
    this.spans.push(row.span);
    this.rollouts.set(rolloutId, row);
    this.tally.waiting(now, "init", 1);
    return row;
  }

  /** @returns false where a pool is full */
  lease(row: RolloutRow, leases: readonly NewLease[], now: number): boolean {
    if (leases.some(({ resource }) => this.held[resource] >= this.input.pools[resource])) return false;
    for (const lease of leases) {
      row.leases.push(lease);
      row.holds.push(lease.resource);
      this.held[lease.resource] += 1;
      if (row.stage === "init" && lease.resource === "sandbox") this.#takeEnvironment(row);
    }
    this.#recordUse(now);
    return true;
  }

  /** @param until only those that end with this stage; absent: all */
  release(row: RolloutRow, now: number, until?: Stage): void {
    const kept = until === undefined ? [] : row.leases.filter((lease) => lease.until !== until);
    if (kept.length === row.leases.length) return;
    for (const lease of row.leases) {
      if (kept.includes(lease)) continue;
      this.held[lease.resource] -= 1;
      if (lease.resource === "sandbox") this.#leaveEnvironment(row, lease);
    }
    row.leases = kept;
    row.holds = kept.map(({ resource }) => resource);
    this.#recordUse(now);
  }

  #takeEnvironment(row: RolloutRow): void {
    row.resets = this.idleEnvironments > 0;
    if (row.resets) this.idleEnvironments -= 1;
  }

  /** A grading sandbox of its own is closed, and so is what was not open yet or was lost. */
  #leaveEnvironment(row: RolloutRow, { until }: NewLease): void {
    const isAgents = until !== "evaluate" || this.input.gradedInPlace?.[row.taskSet] === true;
    const isOpened = row.stage !== "init" || row.resets;
    if (this.#keepsEnvironments && isAgents && isOpened && row.ending !== "sandbox_lost") this.idleEnvironments += 1;
  }

  #recordUse(now: number): void {
    for (const resource of resources) this.tally.use[resource].record(now, this.held[resource]);
  }

  /** Out of waiting, queued or active: what was under way for it is no more. */
  leave(row: RolloutRow, now: number): void {
    row.abort?.();
    row.abort = null;
    if (row.state === "waiting" && !row.staysAway) this.tally.waiting(now, row.stage, -1);
    if (row.staysAway) this.tally.backingOff(now, -1);
    if (row.state === "queued" || row.state === "active") this.tally.inFlight(now, row.stage, -1);
    if (row.state === "active") this.tally.working(now, row.stage, -1);
    row.staysAway = false;
  }

  /** Into a stage's line, with a span of its own. @param notBefore it stays away until then */
  enqueue(row: RolloutRow, stage: Stage, now: number, notBefore = now): void {
    row.stage = stage;
    row.state = "waiting";
    row.readyAt = now;
    row.deliveries = 0;
    row.stageStartedAt = null;
    row.staysAway = notBefore > now;
    row.notBefore = row.staysAway ? notBefore : null;
    row.leaseUntil = null;
    const { rolloutId, sample, attempt } = row;
    const { instance } = row.group;
    row.span = { rolloutId, instance, sample, attempt, stage, readyAt: now, startedAt: null, endedAt: null };
    this.spans.push(row.span);
    if (row.staysAway) this.tally.backingOff(now, 1);
    else this.tally.waiting(now, stage, 1);
  }

  settle(row: RolloutRow, outcome: RolloutOutcome, ending: Ending | null, now: number): void {
    this.leave(row, now);
    this.release(row, now);
    row.span.endedAt ??= now;
    row.state = "settled";
    row.outcome = outcome;
    row.ending = ending;
    row.settledAt = now;
    row.leaseUntil = null;
    row.notBefore = null;
    this.tally.outcomes[outcome] += 1;
  }
}
