/** Workers in virtual time: a delivered stage is claimed, works as long as its rollout takes, and leads to the next. */
import type { Ending } from "@rolldeck/contracts/endings";
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { EventQueue } from "./event-queue.ts";
import { uniform } from "./normal.ts";
import { keyOf, type RolloutRow, type StepRow } from "./rollout-row.ts";
import type { RolloutWork } from "./rollout-work.ts";
import type { RunRows } from "./run-rows.ts";
import { type Piece, SharedProgress } from "./shared-progress.ts";
import { type Gpu, noOverheads, type Overheads } from "./simulation-input.ts";

const failedEnding: Record<Stage, Ending> = {
  init: "sandbox_lost",
  run: "sandbox_lost",
  evaluate: "verifier_error",
};

export class SimulatedWorkers {
  readonly #rows: RunRows;
  readonly #queue: EventQueue;
  readonly #wake: () => void;
  readonly #overheads: Overheads;
  readonly #seed: number;
  /** The engine that samples; null: the run stage's time is its own. */
  readonly #engine: SharedProgress | null;
  /** Run stages that stand still during an update. */
  readonly #runs: SharedProgress | null;

  constructor(rows: RunRows, queue: EventQueue, wake: () => void) {
    const { overheads, gpu, trainer, seed } = rows.input;
    this.#rows = rows;
    this.#queue = queue;
    this.#wake = wake;
    this.#overheads = overheads ?? noOverheads;
    this.#seed = seed ?? 0;
    this.#engine = gpu ? new SharedProgress(queue, (rollouts) => tokensPerMs(gpu, rollouts)) : null;
    this.#runs = trainer?.colocated === true && !gpu ? new SharedProgress(queue, () => 1) : null;
  }

  stage(row: RolloutRow): void {
    this.#later(row, this.#overheads.deliveryMs + this.#overheads.claimMs, () => this.#claim(row));
  }

  /** One thing at a time is under way for a rollout; when it is taken away, the thing is void. */
  #later(row: RolloutRow, ms: number, then: () => void): void {
    let aborted = false;
    row.abort = () => {
      aborted = true;
    };
    this.#queue.after(ms, () => {
      if (!aborted) then();
    });
  }

  #claim(row: RolloutRow): void {
    const { now } = this.#queue;
    row.state = "active";
    row.claim += 1;
    row.deliveries += 1;
    row.stageStartedAt = now;
    row.span.startedAt = now;
    if (row.stage === "init" && row.resets) row.span.reset = true;
    if (row.stage === "run") row.firstVersion ??= this.#rows.servingVersion;
    this.#rows.tally.working(now, row.stage, 1);
    this.#work(row, this.#rows.input.work(keyOf(row)));
  }

  #work(row: RolloutRow, work: RolloutWork): void {
    const key = [this.#seed, "failure", row.rolloutId, row.attempt, row.stage, row.evaluateFailures] as const;
    const fails = uniform(...key) < (this.#rows.input.failures?.[row.stage] ?? 0);
    // It breaks at some moment of its work, so that much of it is lost.
    const part = fails ? uniform(...key, "moment") : 1;
    const end = (): void =>
      this.#later(row, this.#overheads.stageEndMs, () => (fails ? this.#fail(row) : this.#succeed(row, work)));
    const initMs = row.resets ? (work.resetMs ?? work.initMs) : work.initMs;
    if (row.stage === "init") this.#later(row, initMs * part, end);
    else if (row.stage === "evaluate") this.#later(row, work.evaluateMs * part, end);
    else this.#run(row, work, part, end);
  }

  #run(row: RolloutRow, { runMs, sampling }: RolloutWork, part: number, end: () => void): void {
    if (this.#engine === null || sampling === undefined) {
      if (this.#runs === null) this.#later(row, runMs * part, end);
      else this.#share(row, this.#runs, runMs * part, end);
      return;
    }
    const turns = Math.max(1, Math.round(sampling.turns * part));
    const tokens = (sampling.tokens * part) / turns;
    this.#turns(row, { left: turns, tokens, toolMs: (runMs * part) / turns, engine: this.#engine }, end);
  }

  #turns(row: RolloutRow, turns: Turns, end: () => void): void {
    if (turns.left === 0) {
      end();
      return;
    }
    const startedAt = this.#queue.now;
    const { gpu } = this.#rows.input;
    this.#share(row, turns.engine, turns.tokens, () => {
      this.#rows.sampledTokens += turns.tokens;
      const aloneMs = gpu === undefined ? 0 : (turns.tokens * 1_000) / gpu.requestTokensPerSecond;
      this.#rows.tally.waits.gpu += Math.max(0, this.#queue.now - startedAt - aloneMs);
      this.#readEngine();
      this.#later(row, turns.toolMs, () => this.#turns(row, { ...turns, left: turns.left - 1 }, end));
    });
  }

  #share(row: RolloutRow, progress: SharedProgress, units: number, done: () => void): void {
    const piece: Piece = progress.add(units, () => {
      row.abort = null;
      done();
    });
    row.abort = () => {
      progress.remove(piece);
      this.#readEngine();
    };
    this.#readEngine();
  }

  /** What an engine would report of itself. */
  #readEngine(): void {
    if (this.#engine === null) return;
    const { now } = this.#queue;
    const sampling = this.#engine.size;
    this.#rows.tally.active.sampling.record(now, sampling);
    const { cacheRollouts, replicas = 1 } = this.#rows.input.gpu ?? {};
    if (cacheRollouts === undefined) return;
    const room = cacheRollouts * replicas;
    const running = Math.min(sampling, room);
    this.#rows.engine = { at: now, cacheUse: running / room, running, waiting: Math.max(0, sampling - room) };
  }

  #succeed(row: RolloutRow, work: RolloutWork): void {
    const { now } = this.#queue;
    const { stage } = row;
    row.abort = null;
    row.span.endedAt = now;
    if (stage === "evaluate") {
      row.reward = this.#reward(row);
      this.#rows.settle(row, "completed", row.runEnding, now);
    } else {
      this.#rows.leave(row, now);
      this.#rows.release(row, now, stage);
      if (stage === "run") row.runEnding = "finish_tool";
      if (stage === "run" && this.#engine === null) this.#rows.sampledTokens += work.sampling?.tokens ?? 0;
      row.ending = row.runEnding;
      this.#rows.enqueue(row, stage === "init" ? "run" : "evaluate", now);
    }
    this.#wake();
  }

  #reward(row: RolloutRow): number {
    const key = keyOf(row);
    const { reward } = this.#rows.input;
    if (reward !== undefined) return reward(key);
    return uniform(this.#seed, "reward", key.instance.instanceIndex, key.visit, key.sample) < 0.5 ? 1 : 0;
  }

  #fail(row: RolloutRow): void {
    const { now } = this.#queue;
    row.abort = null;
    row.span.endedAt = now;
    this.#rows.leave(row, now);
    this.#rows.release(row, now, row.stage);
    this.#rows.tally.waiting(now, row.stage, 1);
    if (row.stage === "evaluate") row.evaluateFailures += 1;
    else row.infrastructureFailures += 1;
    row.state = "waiting";
    row.ending = failedEnding[row.stage];
    row.leaseUntil = null;
    row.stageStartedAt = null;
    this.#wake();
  }

  update(step: StepRow): void {
    const { colocated = false } = this.#rows.input.trainer ?? {};
    this.#queue.after(this.#overheads.deliveryMs + this.#overheads.claimMs, () => {
      if (colocated) this.#halt(true);
      this.#queue.after(this.#updateMs(step), () => {
        if (colocated) this.#halt(false);
        this.#rows.tally.updating(this.#queue.now, -1);
        // The run may have ended meanwhile.
        if (step.state !== "updating") return;
        this.#rows.servingVersion = step.step;
        this.#rows.moveStep(step, "done", this.#queue.now);
        this.#wake();
      });
    });
  }

  #halt(halted: boolean): void {
    this.#engine?.halt(halted);
    this.#runs?.halt(halted);
  }

  #updateMs(step: StepRow): number {
    const { msPerStep = 0, tokensPerSecond } = this.#rows.input.trainer ?? {};
    if (tokensPerSecond === undefined) return msPerStep;
    const tokensOf = (row: RolloutRow): number => this.#rows.input.work(keyOf(row)).sampling?.tokens ?? 0;
    const tokens = step.batch.reduce((sum, row) => sum + tokensOf(row), 0);
    return msPerStep + (tokens * 1_000) / tokensPerSecond;
  }
}

interface Turns {
  readonly left: number;
  readonly tokens: number;
  readonly toolMs: number;
  readonly engine: SharedProgress;
}

/** What each of so many sampling rollouts gets, tokens per millisecond. */
export function tokensPerMs(gpu: Gpu, rollouts: number): number {
  const { requestTokensPerSecond, peakTokensPerSecond, halfAt, replicas = 1 } = gpu;
  // A replica that has any has a whole one.
  const perReplica = Math.max(1, rollouts / replicas);
  return Math.min(requestTokensPerSecond, peakTokensPerSecond / (perReplica + halfAt)) / 1_000;
}
