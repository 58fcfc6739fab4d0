/**
 * Tells runtimes that open sandboxes ahead how many of which kind the runs will want next. It is a hint and no more: a failure is
 * logged, nothing waits for it, and what is not said again lapses by itself.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { type RolloutsToOpen, rolloutsToOpen } from "@rolldeck/db/reads/rollouts-to-open";
import { readConfig } from "@rolldeck/db/runs/read-config";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { taskOf } from "../rollout-task.ts";
import { specOf } from "./grading-sandboxes.ts";
import { sandboxSpec } from "./sandbox-spec.ts";

export interface ForecastOptions {
  readonly pool: Pool;
  readonly tasks: Pick<OpenedTasks, "of">;
  /** @throws BoundaryError("sandbox") when this server has none of that kind */
  readonly runtimeOf: (task: Pick<Task, "sandbox">, config: RunConfig) => SandboxRuntime;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const everyMs = 5_000;
/** What is as it was is said again after so long, and lapses after `forMs`. */
const againAfterMs = 15_000;
const forMs = 45_000;
const callMs = 20_000;
/** Rollouts of one run that count as its next ones. */
const perRun = 64;

interface Wanted {
  readonly runtime: SandboxRuntime;
  readonly spec: SandboxSpec;
  readonly count: number;
}
interface Told extends Wanted {
  readonly atMs: number;
  /** It could not be told: not tried again at once. */
  readonly failed: boolean;
}

export class SandboxForecast {
  readonly #options: ForecastOptions;
  /** By kind of sandbox. */
  readonly #told = new Map<string, Told>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ForecastOptions) {
    this.#options = options;
  }

  /** At most every few seconds, whoever calls; ends early with the signal. @throws what the database throws */
  async tell(signal: AbortSignal): Promise<void> {
    const { pool, now } = this.#options;
    if (now() - this.#lookedAtMs < everyMs) return;
    this.#lookedAtMs = now();
    const wanted = await this.#wanted(await rolloutsToOpen(pool, perRun));
    for (const [key, { runtime, spec }] of this.#told) {
      if (!wanted.has(key)) wanted.set(key, { runtime, spec, count: 0 });
    }
    /** One that does not answer is asked once in a round. */
    const silent = new Set<SandboxRuntime>();
    for (const [key, each] of wanted) {
      if (signal.aborted) return;
      if (silent.has(each.runtime) || !this.#isNews(key, each)) continue;
      const error = await this.#tellOf(key, each, signal);
      if (error instanceof BoundaryError && error.code === "unavailable") silent.add(each.runtime);
    }
  }

  #isNews(key: string, { count }: Wanted): boolean {
    const told = this.#told.get(key);
    if (told === undefined || this.#options.now() - told.atMs >= againAfterMs) return true;
    return !told.failed && told.count !== count;
  }

  /** @returns what kept it from being told, or null */
  async #tellOf(key: string, wanted: Wanted, signal: AbortSignal): Promise<unknown> {
    const { now, onTrouble } = this.#options;
    const { runtime, spec, count } = wanted;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(callMs)]);
    try {
      await runtime.expect?.(spec, { count, maxLifeMs: spec.maxLifeMs, forMs }, limit);
      this.#remember(key, { ...wanted, atMs: now(), failed: false });
      return null;
    } catch (error) {
      this.#remember(key, { ...wanted, atMs: now(), failed: true });
      if (!signal.aborted) onTrouble(`${runtime.name} was not told which sandboxes are wanted next`, error);
      return error;
    }
  }

  /** Of what is not wanted any more nothing: it lapses where it was not heard. */
  #remember(key: string, told: Told): void {
    if (told.count === 0) this.#told.delete(key);
    else this.#told.set(key, told);
  }

  /** Equal sandboxes of whatever run together. */
  async #wanted(rollouts: readonly RolloutsToOpen[]): Promise<Map<string, Wanted>> {
    const wanted = new Map<string, Wanted>();
    const unfit = new Set<string>();
    for (const rollout of rollouts) {
      const taskSet = `${rollout.runId} ${rollout.taskSet}`;
      if (unfit.has(taskSet)) continue;
      try {
        const found = await this.#sandboxOf(rollout);
        if (found === null) unfit.add(taskSet);
        else {
          const key = keyOf(found.runtime, found.spec);
          wanted.set(key, { ...found, count: rollout.count + (wanted.get(key)?.count ?? 0) });
        }
      } catch (error) {
        // The rollout itself will say so, too.
        unfit.add(taskSet);
        this.#options.onTrouble(`run ${rollout.runId}: the sandboxes it wants next are not known`, error);
      }
    }
    return wanted;
  }

  /** Null where there is no sandbox, or nobody to tell. */
  async #sandboxOf(rollout: RolloutsToOpen): Promise<Pick<Wanted, "runtime" | "spec"> | null> {
    const { pool, tasks, runtimeOf } = this.#options;
    const config = await readConfig(pool, rollout.runId);
    const { sandbox } = await tasks.of(config, rollout.taskSet);
    if (sandbox === "none") return null;
    const runtime = runtimeOf({ sandbox }, config);
    if (runtime.expect === undefined) return null;
    const { task, instance } = await taskOf(tasks, { ...rollout, config });
    const owner = { runId: rollout.runId, rolloutId: "", attempt: 0, purpose: "agent", isEnvironment: false } as const;
    return { runtime, spec: sandboxSpec("", specOf(task, instance), config, owner) };
  }
}

/** Of everything but whose it is. */
function keyOf(runtime: SandboxRuntime, spec: SandboxSpec): string {
  const { id: _id, labels: _labels, ...kind } = spec;
  return JSON.stringify([runtime.name, kind]);
}
