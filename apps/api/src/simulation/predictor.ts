/**
 * Predicts each run once, in the background: as it begins from what earlier runs of its kind took, else from its own first steps as
 * soon as they are over. Invariants: nothing is predicted from durations that nobody measured; one run is played at a time, in a
 * thread of its own and not longer than its limit; what could not be played is not tried again by this process.
 */
import type { PredictedRun, PredictionBasis } from "@rolldeck/contracts/api/predictions";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readDispatched } from "@rolldeck/db/reads/read-dispatched";
import { readDurations } from "@rolldeck/db/reads/read-durations";
import { readEarlierDurations } from "@rolldeck/db/reads/read-earlier-durations";
import { storePrediction, type Unpredicted, unpredictedRuns } from "@rolldeck/db/runs/predictions";
import type { Pool } from "pg";
import { askThread } from "./ask-thread.ts";
import { recordedRollouts, runToPlay, type SimulatedTaskFacts, seedsFor } from "./run-to-play.ts";
import type { PredictionTask } from "./thread-message.ts";

interface Options {
  readonly pool: Pool;
  readonly factsOf: (task: string) => SimulatedTaskFacts | null;
  readonly onError: (error: unknown, runId: string | null) => void;
  /** Between two looks, milliseconds. Default 3000. */
  readonly everyMs?: number;
  /** One run is played no longer than this, milliseconds. Default 30 000. */
  readonly limitMs?: number;
}
interface Known {
  readonly basis: PredictionBasis;
  readonly task: PredictionTask;
}

export class Predictor {
  readonly #options: Options;
  /** Runs without a prediction whose earlier runs were looked at: they stay what they were. */
  #asked = new Set<string>();
  #failed = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(options: Options) {
    this.#options = options;
  }

  start(): void {
    this.#schedule();
  }

  /** A simulation that is played is given up. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#looking;
  }

  /** Looks once at all runs. */
  async look(): Promise<void> {
    const runs = await unpredictedRuns(this.#options.pool);
    const left = new Set(runs.map(({ runId }) => runId));
    this.#asked = new Set([...this.#asked].filter((runId) => left.has(runId)));
    this.#failed = new Set([...this.#failed].filter((runId) => left.has(runId)));
    for (const run of runs) {
      if (this.#closing.signal.aborted) return;
      if (!this.#failed.has(run.runId)) await this.#predict(run);
    }
  }

  #schedule(): void {
    if (this.#closing.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.look()
        .catch((error: unknown) => this.#options.onError(error, null))
        .finally(() => this.#schedule());
    }, this.#options.everyMs ?? 3_000);
    this.#timer.unref();
  }

  async #predict(run: Unpredicted): Promise<void> {
    try {
      const known = await this.#known(run);
      if (known === null) return;
      const predicted = await this.#play(known.task);
      if (predicted === null) return;
      await storePrediction(this.#options.pool, run.runId, { ...predicted, basis: known.basis });
    } catch (error) {
      this.#failed.add(run.runId);
      this.#options.onError(error, run.runId);
    }
  }

  /** Null: nothing was measured yet. */
  async #known(run: Unpredicted): Promise<Known | null> {
    const earlier = this.#asked.has(run.runId) ? null : await this.#fromEarlier(run);
    this.#asked.add(run.runId);
    return earlier ?? (run.kind === "train" ? await this.#fromOwn(run) : null);
  }

  async #fromEarlier({ runId, kind }: Unpredicted): Promise<Known | null> {
    const { pool, factsOf } = this.#options;
    const { runIds, ...durations } = await readEarlierDurations(pool, {
      runId,
      purpose: kind,
      limit: recordedRollouts,
    });
    const rollouts = durations.rollouts.taskSet.length;
    if (rollouts === 0) return null;
    const dispatched = await readDispatched(pool, runId);
    if (!coversAll(dispatched.config, durations.rollouts.taskSet)) return null;
    const task = taskOf(dispatched.config, runToPlay(dispatched, durations, factsOf));
    return { basis: { from: "earlier-runs", rollouts, runIds: [...runIds] }, task };
  }

  /** Of the oldest step that anything was measured in. */
  async #fromOwn({ runId, stepsDone }: Unpredicted): Promise<Known | null> {
    const { pool, factsOf } = this.#options;
    for (const step of stepsDone) {
      const durations = await readDurations(pool, { runId, purpose: "train", limit: recordedRollouts, upToStep: step });
      const rollouts = durations.rollouts.taskSet.length;
      if (rollouts === 0) continue;
      const dispatched = await readDispatched(pool, runId);
      const task = taskOf(dispatched.config, runToPlay(dispatched, durations, factsOf));
      return { basis: { from: "first-steps", rollouts, step }, task };
    }
    return null;
  }

  /** Null: this process is closing. */
  async #play(task: PredictionTask): Promise<PredictedRun | null> {
    const { signal } = this.#closing;
    if (signal.aborted) return null;
    const limitMs = this.#options.limitMs ?? 30_000;
    const answer = await askThread(task, { limitMs, signal });
    if (answer !== null && "predicted" in answer) return answer.predicted;
    if (signal.aborted) return null;
    throw new Error(`the prediction was not over after ${limitMs / 1000} s`);
  }
}

const taskOf = (config: RunConfig, run: PredictionTask["run"]): PredictionTask => ({
  run,
  seeds: seedsFor(config),
  stepsToTake: config.kind === "train" ? config.budget.steps : 1,
});

/** A task set that nobody has seen makes a step of unknown length. */
const coversAll = ({ taskSets }: RunConfig, seen: readonly number[]): boolean => {
  const places = new Set(seen);
  return taskSets.every((_, place) => places.has(place));
};
