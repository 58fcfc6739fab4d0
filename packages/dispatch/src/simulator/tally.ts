/** What a simulation counts while it goes: use over time, and how long rollouts waited for what. */
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import { type Resource, resources } from "@rolldeck/contracts/plan";
import { type WaitCause, waitCauses } from "./simulation.ts";
import { StepRecorder } from "./step-function.ts";

type CountByStage = Record<Stage, number>;
const recorders = <Name extends string>(names: readonly Name[]): Record<Name, StepRecorder> => {
  const made = {} as Record<Name, StepRecorder>;
  for (const name of names) made[name] = new StepRecorder();
  return made;
};

export class Tally {
  readonly use = recorders<Resource>(resources);
  readonly active = recorders<Stage | "sampling">([...stages, "sampling"]);
  readonly waits: Record<WaitCause, number>;
  readonly outcomes = { completed: 0, failed: 0, cancelled: 0 };
  trainerOnlyMs = 0;
  trainerIdleMs = 0;
  /** In the stage's line when it was planned last. */
  readonly #waiting: CountByStage = { init: 0, run: 0, evaluate: 0 };
  /** Came into the line since: they wait for nothing but the next plan. */
  readonly #unplanned: CountByStage = { init: 0, run: 0, evaluate: 0 };
  readonly #inFlight: CountByStage = { init: 0, run: 0, evaluate: 0 };
  readonly #working: CountByStage = { init: 0, run: 0, evaluate: 0 };
  /** What each stage's line waits for, as the last plan left it. */
  readonly #cause: Record<Stage, WaitCause> = { init: "init-slot", run: "run-slot", evaluate: "grade-slot" };
  #backingOff = 0;
  #updating = 0;
  #since = 0;

  constructor() {
    this.waits = Object.fromEntries(waitCauses.map((cause) => [cause, 0])) as Record<WaitCause, number>;
  }

  /** Books the time since the last change. To be called before every change. */
  advance(now: number): void {
    const ms = now - this.#since;
    if (ms <= 0) return;
    this.#since = now;
    for (const stage of stages) {
      this.waits[this.#cause[stage]] += this.#waiting[stage] * ms;
      this.waits.engine += this.#unplanned[stage] * ms;
    }
    this.waits["back-off"] += this.#backingOff * ms;
    if (this.#updating === 0) this.trainerIdleMs += ms;
    else if (stages.every((stage) => this.#inFlight[stage] === 0)) this.trainerOnlyMs += ms;
  }

  waiting(now: number, stage: Stage, change: number): void {
    this.advance(now);
    const line = change > 0 || this.#waiting[stage] === 0 ? this.#unplanned : this.#waiting;
    line[stage] += change;
  }
  /** A plan has seen all who wait; whom it leaves waiting lacks something. */
  planned(now: number): void {
    this.advance(now);
    for (const stage of stages) {
      this.#waiting[stage] += this.#unplanned[stage];
      this.#unplanned[stage] = 0;
    }
  }
  backingOff(now: number, change: number): void {
    this.advance(now);
    this.#backingOff += change;
  }
  inFlight(now: number, stage: Stage, change: number): void {
    this.advance(now);
    this.#inFlight[stage] += change;
  }
  working(now: number, stage: Stage, change: number): void {
    this.advance(now);
    this.#working[stage] += change;
    this.active[stage].record(now, this.#working[stage]);
  }
  updating(now: number, change: number): void {
    this.advance(now);
    this.#updating += change;
  }

  waitsFor(now: number, stage: Stage, cause: WaitCause): void {
    this.advance(now);
    this.#cause[stage] = cause;
  }
}
