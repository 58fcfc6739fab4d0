/**
 * A discrete-event world in memory: runs, pools, workers and accidents around the real planner. It plans as the reconciler does
 * (whenever a row changed or a timer is due) and checks on every plan what must always hold.
 */
import { strict as assert } from "node:assert";
import { endedRunStatuses, hasEdge, type RunStatus, runEdges } from "@rolldeck/contracts/lifecycle";
import { type Action, type Demand, type ResourceCounts, type RunSnapshot, resources } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { plan } from "../src/plan.ts";
import { share } from "../src/share.ts";
import { applyAction } from "./apply-action.ts";
import { counts } from "./build-snapshot.ts";
import { checkReserve, checkRun } from "./check-run.ts";
import { Clock } from "./clock.ts";
import { settle } from "./settle.ts";
import { coarseWishes, exactWishes } from "./wishes.ts";
import { type Chaos, calm, Workers } from "./workers.ts";
import { heldBy, newRun, type RunRow, snapshotOf, usedOf } from "./world-rows.ts";

export interface RunSetup extends Pick<RunSnapshot, "taskSizes" | "taskSandboxes" | "gradedInPlace"> {
  readonly config: RunConfig;
}
export interface WorldSetup {
  readonly seed: number;
  readonly pools: ResourceCounts;
  readonly runs: readonly RunSetup[];
  readonly chaos: Chaos;
  /** Accidents happen before this time only, milliseconds from the start. */
  readonly chaosMs: number;
  /** How runs wish for leases: what they could start now, or (as one SQL statement can tell) by who waits at which stage. */
  readonly wishes: "exact" | "coarse";
}

const maxRounds = 25;
const maxEvents = 60_000;

export class World {
  readonly clock: Clock;
  readonly runs: readonly RunRow[];
  readonly workers: Workers;
  readonly #pools: ResourceCounts;
  readonly #wish: typeof exactWishes;
  #plans = 0;
  #granted: ReadonlyMap<string, ResourceCounts> = new Map();
  /** How often each action was taken. */
  readonly taken = new Map<Action["do"], number>();

  constructor({ seed, pools, runs, chaos, chaosMs, wishes }: WorldSetup) {
    this.clock = new Clock(seed);
    this.runs = runs.map((run, at) => newRun(`run-${at}`, run.config, run));
    this.#pools = pools;
    this.#wish = wishes === "coarse" ? coarseWishes : exactWishes;
    const until = this.clock.now + chaosMs;
    const chaosNow = (): Chaos => (this.clock.now < until ? chaos : calm);
    this.workers = new Workers(this.clock, chaosNow, (run) => this.wake(run));
  }

  wake(run: RunRow): void {
    run.dirty = true;
  }

  /** What a person asks for: done when the lifecycle allows it, else nothing. */
  ask(run: RunRow, to: RunStatus): boolean {
    if (!hasEdge(runEdges, run.status, to)) return false;
    run.status = to;
    run.endReason = null;
    this.wake(run);
    return true;
  }

  /** A person cancels the `nth` group that counts to a step that gathers. */
  cancelGroup(run: RunRow, nth: number): void {
    const open = new Set(run.steps.filter(({ state }) => state === "gathering").map(({ stepId }) => stepId));
    const groups = run.groups.filter(({ stepId, setAside }) => open.has(stepId) && setAside === null);
    const group = groups[nth % Math.max(1, groups.length)];
    if (group === undefined) return;
    const { groupId, stepId } = group;
    const action: Action = { do: "set-aside", groupId, stepId, as: "cancelled", reason: "a person cancelled it" };
    this.#apply(run, counts(0), action);
    this.wake(run);
  }

  /** A person cancels the train step that gathers, as the database does: its unsettled rollouts end with it. */
  cancelStep(run: RunRow): void {
    const step = run.steps.find(({ state, purpose }) => state === "gathering" && purpose === "train");
    if (step === undefined) return;
    step.state = "cancelled";
    for (const rollout of run.rollouts) {
      if (rollout.stepId !== step.stepId || rollout.state === "settled") continue;
      settle(rollout, { outcome: "cancelled", reward: null, at: this.clock.now });
      rollout.ending = "cancelled";
    }
    this.wake(run);
  }

  /** The backend goes down and comes back as another boot. */
  loseBackend(run: RunRow, awayMs: number): void {
    run.backendBootId = null;
    this.wake(run);
    this.clock.after(awayMs, () => {
      run.backendBootId = `boot-${this.clock.now}`;
      this.wake(run);
    });
  }

  /** Lets time pass until every run has ended. @throws AssertionError when one never does */
  runToEnd(): void {
    for (let events = 0; events < maxEvents; events++) {
      this.reconcileDue();
      if (this.runs.every(({ status }) => endedRunStatuses.includes(status))) return;
      assert.ok(this.#advance(), `nothing will ever happen again: ${this.describe()}`);
    }
    assert.fail(`no end after ${maxEvents} events: ${this.describe()}`);
  }

  /** Lets `ms` pass. */
  runFor(ms: number): void {
    const until = this.clock.now + ms;
    for (;;) {
      this.reconcileDue();
      const next = this.#nextAt();
      if (next === null || next > until) break;
      this.#advance();
    }
    this.clock.now = Math.max(this.clock.now, until);
  }

  /** Plans every run that was woken or whose timer is due, until all are quiet. */
  reconcileDue(): void {
    for (let round = 0; round < maxRounds; round++) {
      const due = this.runs.filter(({ dirty, wakeAt }) => dirty || (wakeAt !== null && wakeAt <= this.clock.now));
      if (due.length === 0) return;
      for (const run of due) this.#reconcile(run);
    }
    assert.fail(`plans without end at one moment: ${this.describe()}`);
  }

  #reconcile(run: RunRow): void {
    const grants = this.#shareOut().get(run.runId);
    assert.ok(grants);
    const snapshot = snapshotOf(run, this.clock.now);
    const planned = plan(snapshot, grants);
    // Now and then, because it costs as much as all the rest.
    if (this.#plans++ % 16 === 0) assert.deepEqual(plan(structuredClone(snapshot), grants), planned, "plans differ");
    for (const action of planned.actions) this.#apply(run, grants, action);
    run.dirty = planned.actions.some((action) => action.do !== "note");
    run.wakeAt = planned.wakeAt;
    this.#checkRepeats(run, grants, planned.actions);
    this.#checkPools();
    checkRun(run, this.clock.now);
  }

  #apply(run: RunRow, grants: ResourceCounts, action: Action): void {
    this.taken.set(action.do, (this.taken.get(action.do) ?? 0) + 1);
    applyAction(
      {
        now: this.clock.now,
        run,
        runs: this.runs,
        pools: this.#pools,
        grants,
        deliverStage: (rollout) => this.workers.stage(run, rollout),
        deliverPrepare: () => this.workers.prepare(run),
        deliverUpdate: (step) => this.workers.update(run, step),
      },
      action,
    );
  }

  /** A plan of the rows that the actions left repeats none of them. */
  #checkRepeats(run: RunRow, grants: ResourceCounts, actions: readonly Action[]): void {
    if (actions.length === 0) return;
    const key = (action: Action): string => JSON.stringify(action);
    const done = new Set(actions.map(key));
    const repeated = plan(snapshotOf(run, this.clock.now), grants)
      .actions.map(key)
      .filter((action) => done.has(action));
    assert.ok(repeated.length === 0, `a plan repeats what the last one did: ${repeated}`);
  }

  #checkPools(): void {
    const used = usedOf(this.runs);
    for (const resource of resources)
      assert.ok(used[resource] <= this.#pools[resource], `pool ${resource} over its size`);
    const [only, ...others] = this.runs;
    if (only && others.length === 0) checkReserve(only, this.#pools.sandbox);
  }

  /** Shares the pools anew; runs whose grant rose are woken, as the reconciler does. */
  #shareOut(): ReadonlyMap<string, ResourceCounts> {
    const before = this.#granted;
    this.#granted = this.#grants();
    for (const run of this.runs) {
      const [old, now] = [before.get(run.runId), this.#granted.get(run.runId)];
      if (now && resources.some((resource) => now[resource] > (old?.[resource] ?? 0))) this.wake(run);
    }
    return this.#granted;
  }

  #grants(): Map<string, ResourceCounts> {
    const [only, ...others] = this.runs;
    if (only && others.length === 0) return new Map([[only.runId, this.#pools]]);
    const used = usedOf(this.runs);
    const free = { ...used };
    for (const resource of resources) free[resource] = this.#pools[resource] - used[resource];
    const wishes = new Map(this.runs.map((run) => [run.runId, this.#wish(run, free, this.clock.now)]));
    const byResource = resources.map((resource) => {
      const demands = this.runs.map((run): Demand => {
        const wish = wishes.get(run.runId)?.[resource];
        const held = heldBy(run)[resource];
        return {
          runId: run.runId,
          weight: run.config.dispatcher.weight,
          priority: run.config.dispatcher.priority,
          held,
          wanted: held + (wish?.more ?? 0),
          waitingSince: wish?.since ?? null,
        };
      });
      return { resource, granted: share(this.#pools[resource], demands) };
    });
    return new Map(
      this.runs.map(({ runId }) => {
        const grants = { sandbox: 0, initSlot: 0, runSlot: 0, gradeSlot: 0, gpu: 0 };
        for (const { resource, granted } of byResource) grants[resource] = granted.get(runId) ?? 0;
        return [runId, grants];
      }),
    );
  }

  #nextAt(): number | null {
    const times = this.runs.map(({ wakeAt }) => wakeAt).concat(this.clock.nextAt);
    const known = times.filter((at) => at !== null);
    return known.length === 0 ? null : Math.min(...known);
  }

  /** Goes to the next event or timer. @returns false when there is none */
  #advance(): boolean {
    const next = this.#nextAt();
    if (next === null) return false;
    if (this.clock.nextAt === next) this.clock.step();
    else this.clock.now = Math.max(this.clock.now, next);
    return true;
  }

  describe(): string {
    return JSON.stringify(
      this.runs.map((run) => ({
        status: run.status,
        model: [run.servingVersion, run.modelBootId, run.backendBootId, run.prepareLeaseUntil],
        steps: run.steps.map(({ purpose, step, state }) => `${purpose} ${step} ${state}`),
        rollouts: run.rollouts
          .filter(({ state }) => state !== "settled")
          .map(({ stage, state, attempt, ending, leases }) => [
            stage,
            state,
            attempt,
            ending,
            leases.map((l) => l.resource),
          ]),
        held: heldBy(run),
      })),
    );
  }
}
