/**
 * Workers of the little world: they claim, act for a while, and write only while their claim is current. Chaos makes them lose
 * jobs, die, wake up late, hang, fail and hand back.
 */
import type { Ending } from "@rolldeck/contracts/endings";
import { endedRunStatuses, type Stage } from "@rolldeck/contracts/lifecycle";
import type { Clock } from "./clock.ts";
import { settle } from "./settle.ts";
import type { RolloutRow, RunRow, StepRow } from "./world-rows.ts";

/** Probabilities per job; all zero = a calm world. */
export interface Chaos {
  readonly lostJob: number;
  readonly lostWorker: number;
  readonly hang: number;
  readonly failure: number;
  readonly handBack: number;
}
export const calm: Chaos = { lostJob: 0, lostWorker: 0, hang: 0, failure: 0, handBack: 0 };

const leaseLeftMs = 15_000;
const durations: Record<Stage, readonly [number, number]> = {
  init: [50, 3_000],
  run: [500, 60_000],
  evaluate: [50, 5_000],
};
const runEndings: readonly Ending[] = ["finish_tool", "answer", "turn_limit", "length", "no_call"];
const failures: readonly Ending[] = ["sandbox_lost", "model_server", "worker_lost", "infrastructure"];

export class Workers {
  readonly #clock: Clock;
  readonly #chaos: () => Chaos;
  readonly #wake: (run: RunRow) => void;
  lateWrites = 0;

  constructor(clock: Clock, chaos: () => Chaos, wake: (run: RunRow) => void) {
    this.#clock = clock;
    this.#chaos = chaos;
    this.#wake = wake;
  }

  stage(run: RunRow, rollout: RolloutRow): void {
    const { attempt, stage } = rollout;
    if (this.#clock.chance(this.#chaos().lostJob)) return;
    // A stalled job is delivered to a second worker as well.
    const deliveries = this.#clock.chance(this.#chaos().lostJob) ? 2 : 1;
    for (let n = 0; n < deliveries; n++) {
      this.#clock.after(this.#clock.between(1, 400), () => this.#claimStage(run, rollout, attempt, stage));
    }
  }

  #claimStage(run: RunRow, rollout: RolloutRow, attempt: number, stage: Stage): void {
    const free = rollout.state === "queued" || (rollout.state === "active" && isPast(rollout, this.#clock.now));
    if (rollout.attempt !== attempt || rollout.stage !== stage || !free) return;
    if (endedRunStatuses.includes(run.status)) return;
    rollout.claim += 1;
    rollout.deliveries += 1;
    rollout.state = "active";
    rollout.alive = true;
    if (stage === "init" && rollout.stageStartedAt === null) run.starts.push(this.#clock.now);
    if (stage === "run") rollout.firstVersion ??= run.servingVersion;
    rollout.stageStartedAt ??= this.#clock.now;
    this.#act(run, rollout, attempt, rollout.claim);
  }

  #act(run: RunRow, rollout: RolloutRow, attempt: number, claim: number): void {
    const chaos = this.#chaos();
    const { stage } = rollout;
    const [low, high] = durations[stage];
    const takesMs = this.#clock.between(low, high);
    const write = (edge: () => void) => () => {
      if (rollout.state !== "active" || rollout.attempt !== attempt || rollout.claim !== claim) this.lateWrites += 1;
      else {
        edge();
        this.#wake(run);
      }
    };
    if (this.#clock.chance(chaos.lostWorker)) {
      this.#clock.after(takesMs, () => this.#die(rollout, attempt, claim));
      // It was only asleep: its write must find the claim taken, or still be its own.
      this.#clock.after(
        takesMs + this.#clock.between(1_000, 90_000),
        write(() => this.#succeed(run, rollout)),
      );
      return;
    }
    if (this.#clock.chance(chaos.hang)) return;
    if (this.#clock.chance(chaos.handBack)) {
      this.#clock.after(
        takesMs,
        write(() => Object.assign(rollout, { state: "queued", alive: false, leaseUntil: this.#clock.now })),
      );
      return;
    }
    const end = this.#clock.chance(chaos.failure) ? () => this.#fail(rollout) : () => this.#succeed(run, rollout);
    this.#clock.after(takesMs, write(end));
  }

  #die(rollout: RolloutRow, attempt: number, claim: number): void {
    if (rollout.attempt !== attempt || rollout.claim !== claim || rollout.state !== "active") return;
    rollout.alive = false;
    rollout.leaseUntil = this.#clock.now + leaseLeftMs;
  }

  #succeed(run: RunRow, rollout: RolloutRow): void {
    leave(rollout, rollout.stage);
    if (rollout.stage === "evaluate") {
      settle(rollout, { outcome: "completed", reward: this.#clock.between(0, 1), at: this.#clock.now });
      return;
    }
    if (rollout.stage === "run") {
      rollout.runEnding = runEndings[this.#clock.between(0, runEndings.length - 1)] ?? null;
      run.sampledTokens += this.#clock.between(1, 100);
    }
    const next = rollout.stage === "init" ? "run" : "evaluate";
    Object.assign(rollout, { stage: next, state: "waiting", ending: rollout.runEnding, readyAt: this.#clock.now });
    Object.assign(rollout, { deliveries: 0, stageStartedAt: null, notBefore: null });
  }

  #fail(rollout: RolloutRow): void {
    leave(rollout, rollout.stage);
    if (rollout.stage === "evaluate") {
      rollout.evaluateFailures += 1;
      rollout.ending = "verifier_error";
    } else {
      rollout.infrastructureFailures += 1;
      rollout.ending = failures[this.#clock.between(0, failures.length - 1)] ?? "infrastructure";
    }
    rollout.state = "waiting";
  }

  prepare(run: RunRow): void {
    if (this.#clock.chance(this.#chaos().lostJob)) return;
    this.#clock.after(this.#clock.between(1, 400), () => {
      if (run.prepareAlive) return;
      run.prepareClaim += 1;
      run.prepareAlive = true;
      const claim = run.prepareClaim;
      this.#clock.after(this.#clock.between(200, 8_000), () => this.#endPrepare(run, claim));
    });
  }

  #endPrepare(run: RunRow, claim: number): void {
    if (run.prepareClaim !== claim || !run.prepareAlive) return;
    if (this.#clock.chance(this.#chaos().lostWorker)) {
      Object.assign(run, { prepareAlive: false, prepareLeaseUntil: this.#clock.now + leaseLeftMs });
      return;
    }
    if (run.backendBootId === null) {
      // It waits for the backend to come back.
      this.#clock.after(1_000, () => this.#endPrepare(run, claim));
      return;
    }
    run.prepareAlive = false;
    run.prepareLeaseUntil = null;
    if (this.#clock.chance(this.#chaos().failure)) {
      run.prepareFailures += 1;
      run.prepareLeaseUntil = this.#clock.now + 1_000 * run.prepareFailures;
    } else {
      Object.assign(run, {
        prepareFailures: 0,
        modelBootId: run.backendBootId,
        servingVersion: run.servingVersion ?? 0,
      });
    }
    this.#wake(run);
  }

  update(run: RunRow, step: StepRow): void {
    if (this.#clock.chance(this.#chaos().lostJob)) return;
    this.#clock.after(this.#clock.between(1, 400), () => {
      if (step.state !== "updating" || step.alive) return;
      step.claim += 1;
      step.alive = true;
      const claim = step.claim;
      this.#clock.after(this.#clock.between(500, 20_000), () => this.#endUpdate(run, step, claim));
    });
  }

  #endUpdate(run: RunRow, step: StepRow, claim: number): void {
    if (step.state !== "updating" || step.claim !== claim) return;
    step.alive = false;
    if (this.#clock.chance(this.#chaos().lostWorker)) {
      step.updateLeaseUntil = this.#clock.now + leaseLeftMs;
      return;
    }
    if (run.modelBootId !== run.backendBootId || this.#clock.chance(this.#chaos().failure)) {
      step.updateFailures += 1;
      step.updateLeaseUntil = this.#clock.now + 1_000 * step.updateFailures;
    } else {
      Object.assign(step, { state: "done", trained: true });
      run.servingVersion = step.step;
    }
    this.#wake(run);
  }
}

const isPast = ({ alive, leaseUntil }: RolloutRow, now: number): boolean => !alive && (leaseUntil ?? 0) <= now;

/** The claim is spent, and the stage's leases are given back. */
function leave(rollout: RolloutRow, stage: Stage): void {
  rollout.leases = rollout.leases.filter(({ until }) => until !== stage);
  rollout.alive = false;
  rollout.leaseUntil = null;
}
