/**
 * Launches trainers with their runs on Ray clusters, looks after them, and stops them with their runs. Called by the process that sweeps;
 * a submission is idempotent by run and attempt, so that whoever sweeps next goes on where this one was lost.
 */
import { hideSecrets } from "@rolldeck/backends/http/hide-secrets";
import type { ListedTrainer } from "@rolldeck/backends/trainers/read-trainers";
import { ConflictError } from "@rolldeck/contracts/errors";
import { isEndedTrainerJob, launchedBackends, type TrainerJobState } from "@rolldeck/contracts/trainer-jobs";
import type { Pool } from "@rolldeck/db/connect";
import {
  beginTrainerJob,
  moveTrainerJob,
  noteTrainerJob,
  type TrainerJobScene,
  trainerJobScenes,
} from "@rolldeck/db/driven/trainer-jobs";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { pausesAtEnd, planTrainer } from "@rolldeck/dispatch/plan-trainer";
import { RayFailure } from "@rolldeck/fleet/ray/ray-failure";
import type { RayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { trainerJobSpec } from "./trainer-job-spec.ts";

export interface WatchedTrainer extends ListedTrainer {
  readonly jobs: RayJobs;
}
export interface TrainerWatchOptions {
  readonly pool: Pool;
  readonly trainers: readonly WatchedTrainer[];
  /** The run has something new for its planner. */
  readonly wake: (runId: string) => void;
  readonly onTrouble: (trouble: string, error: unknown) => void;
}
type Job = NonNullable<TrainerJobScene["job"]> & { readonly runId: string };

const logTailChars = 16_384;
/** Looks between two readings of a job's log: all of it travels. */
const logEvery = 4;

export class TrainerWatch {
  readonly #options: TrainerWatchOptions;
  readonly #stopping = new AbortController();
  #round: Promise<void> | null = null;
  #rounds = 0;

  constructor(options: TrainerWatchOptions) {
    this.#options = options;
  }

  /** Starts a round unless one is under way: a cluster that does not answer keeps no sweep waiting. */
  begin(): void {
    if (this.#options.trainers.length === 0 || this.#stopping.signal.aborted) return;
    this.#round ??= this.round()
      .catch((error: unknown) => this.#trouble("launched trainers could not be looked after", error))
      .finally(() => {
        this.#round = null;
      });
  }

  /** Resolves when the present round is over. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the worker is stopping"));
    await this.#round;
  }

  /** Every run that has a launched trainer, once. */
  async round(): Promise<void> {
    this.#rounds++;
    const scenes = await trainerJobScenes(this.#options.pool, launchedBackends);
    await Promise.all(
      scenes.map((scene) =>
        this.#tend(scene).catch((error: unknown) => this.#trouble(`trainer of run ${scene.runId}`, error)),
      ),
    );
  }

  async #tend(scene: TrainerJobScene): Promise<void> {
    const { runId, status } = scene;
    const name = scene.config.backend.server;
    // Where another worker's list has it, that one will sweep.
    const trainer = this.#options.trainers.find((each) => each.name === name);
    const action = planTrainer({ status, job: scene.job });
    if (trainer === undefined || action === null) return;
    if (action.do === "launch") {
      const job = { runId, attempt: action.attempt, trainer: trainer.name, submissionId: idOf(runId, action.attempt) };
      if (!(await beginTrainerJob(this.#options.pool, job))) return;
      return this.#submit(trainer, scene, { ...job, state: "submitting" });
    }
    if (scene.job === null) return;
    const job = { ...scene.job, runId };
    if (action.do === "submit") return this.#submit(trainer, scene, job);
    if (action.do === "stop") await trainer.jobs.stop(job.submissionId, this.#stopping.signal).catch(noJob);
    return this.#look(trainer, scene, job);
  }

  async #submit(trainer: WatchedTrainer, scene: TrainerJobScene, job: Job): Promise<void> {
    try {
      await trainer.jobs.submit(trainerJobSpec(trainer, scene, job), this.#stopping.signal);
    } catch (error) {
      if (!(error instanceof RayFailure)) throw error;
      if (error.code !== "job-exists") {
        const words = shown(trainer, error.message);
        if (error.retryable) return noteTrainerJob(this.#options.pool, job, { message: words });
        return this.#end(scene, job, "failed", `it could not be launched: ${words}`);
      }
    }
    await moveTrainerJob(this.#options.pool, { ...job, from: job.state, to: "pending" }, null);
  }

  async #look(trainer: WatchedTrainer, scene: TrainerJobScene, job: Job): Promise<void> {
    const { pool } = this.#options;
    const found = await this.#stateOf(trainer, job);
    if (found === null) return;
    const isOver = isEndedTrainerJob(found.state);
    if (isOver || this.#rounds % logEvery === 0) await this.#keepLog(trainer, job);
    if (isOver) return this.#end(scene, job, found.state, found.message);
    if (found.state === job.state) return noteTrainerJob(pool, job, { message: found.message });
    await moveTrainerJob(pool, { ...job, from: job.state, to: found.state }, found.message);
  }

  /** @returns null where the cluster does not answer: that says nothing of the job */
  async #stateOf(trainer: WatchedTrainer, job: Job): Promise<{ state: TrainerJobState; message: string } | null> {
    try {
      const { state, message, exitCode } = await trainer.jobs.status(job.submissionId, this.#stopping.signal);
      const words = shown(trainer, message);
      return { state, message: exitCode === null ? words : `exit status ${exitCode}: ${words}` };
    } catch (error) {
      if (!(error instanceof RayFailure)) throw error;
      // What was never sent and is not there was stopped before.
      if (error.code === "no-job" && job.state === "submitting") return { state: "stopped", message: "never launched" };
      if (error.code === "no-job") return { state: "lost", message: "the cluster no longer knows it" };
      await noteTrainerJob(this.#options.pool, job, { message: shown(trainer, error.message) });
      return null;
    }
  }

  async #keepLog(trainer: WatchedTrainer, job: Job): Promise<void> {
    const log = await trainer.jobs.logs(job.submissionId, this.#stopping.signal).catch(noJob);
    if (log) await noteTrainerJob(this.#options.pool, job, { logTail: tailOf(shown(trainer, log)) });
  }

  /** The run first: an end that was seen and not noted is seen again. */
  async #end(scene: TrainerJobScene, job: Job, to: TrainerJobState, message: string): Promise<void> {
    const { pool, wake } = this.#options;
    const pauses = pausesAtEnd(scene.status);
    if (pauses === null) return;
    if (pauses) {
      const reason = `the launched trainer (${job.trainer}) ended before the run: ${to}, ${message}`;
      // It moved on meanwhile: the next round sees where it is.
      const moved = await moveRun(pool, job.runId, "pausing", reason).catch((error: unknown) => {
        if (!(error instanceof ConflictError)) throw error;
        return null;
      });
      if (moved === null) return;
      wake(job.runId);
    }
    await moveTrainerJob(pool, { ...job, from: job.state, to }, message);
  }

  #trouble(trouble: string, error: unknown): void {
    if (!this.#stopping.signal.aborted) this.#options.onTrouble(trouble, error);
  }
}

const idOf = (runId: string, attempt: number): string => `rolldeck-${runId}-${attempt}`;

/** A cluster that does not answer, or does not know the job, has nothing to stop and no log. */
function noJob(error: unknown): null {
  if (error instanceof RayFailure) return null;
  throw error;
}

/** Trainers print their environment, and clusters quote what failed. */
const shown = ({ rolldeck, ray, engines }: WatchedTrainer, text: string): string =>
  hideSecrets(text, [rolldeck.token, ray.token ?? "", ...engines.keys]);

/** Whole lines. */
function tailOf(log: string): string {
  if (log.length <= logTailChars) return log;
  const tail = log.slice(-logTailChars);
  return tail.slice(tail.indexOf("\n") + 1);
}
