/**
 * Sandboxes of rollouts: opened and closed together with their rows. Invariants: the row comes before the sandbox and is closed
 * after it, so a crash at any point leaves a row that the sweep acts on and a lease that ends by itself; whatever goes wrong
 * while opening leaves nothing behind. An environment, which a run keeps, is touched only by the claim that its row names.
 */
import { randomBytes } from "node:crypto";
import { BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import type { SandboxPurpose } from "@rolldeck/contracts/events";
import {
  isLastingSandboxFailure,
  type Sandbox,
  type SandboxRuntime,
  sandboxId,
  type TaskSandbox,
} from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { resettingRuntimes, type SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { takeEnvironment } from "@rolldeck/db/hot/environments";
import { planSandbox, type SandboxPhases, sandboxEnded, sandboxOpened } from "@rolldeck/db/hot/sandboxes";
import { agentSandbox } from "@rolldeck/db/reads/live-sandboxes";
import { LoggedSandbox, SandboxLog } from "./logged-sandbox.ts";
import { fingerprintOf, imageText, networkText, runtimeNameOf, sandboxSpec } from "./sandbox-spec.ts";

export interface RolloutSandboxesOptions {
  readonly pool: Pool;
  readonly runtime: (name: SandboxRuntimeName) => SandboxRuntime;
  readonly imageRuntime: SandboxRuntimeName;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** Whose sandbox it is. */
export type StageOfRollout = Pick<ClaimedStage, "runId" | "attempt" | "claim" | "config"> & {
  readonly rolloutId: string;
};

export interface OpenSandbox {
  /** Writes down what is done in it. */
  readonly sandbox: Sandbox;
  readonly log: SandboxLog;
  readonly runtime: SandboxRuntime;
}

interface WantedSandbox {
  readonly task: Pick<Task, "sandbox">;
  readonly spec: TaskSandbox;
  readonly purpose: SandboxPurpose;
}

interface Opening {
  /** The verifier works in it. */
  readonly inPlace: boolean;
  /** The run keeps it for its next rollouts. */
  readonly keeps?: boolean;
  readonly prepare?: (sandbox: Sandbox) => Promise<void>;
}

interface Place {
  readonly runtime: SandboxRuntime;
  readonly id: string;
  readonly isEnvironment: boolean;
  /** For people. */
  readonly image: string | null;
}

interface Making {
  readonly phase: "open" | "reset";
  readonly make: () => Promise<Sandbox>;
}

const closeTimeoutMs = 60_000;

export class RolloutSandboxes {
  readonly #options: RolloutSandboxesOptions;

  constructor(options: RolloutSandboxesOptions) {
    this.#options = options;
  }

  /** @throws BoundaryError("sandbox") when this server has none of that kind */
  runtimeOf(task: Pick<Task, "sandbox">, config: ClaimedStage["config"]): SandboxRuntime {
    return this.#options.runtime(this.runtimeNameOf(task, config));
  }

  runtimeNameOf(task: Pick<Task, "sandbox">, config: ClaimedStage["config"]): SandboxRuntimeName {
    return runtimeNameOf(task, config, this.#options.imageRuntime);
  }

  /**
   * A new one, with its row, or an environment of the run that was reset. It is in use when `prepare` (set-up that it is worth nothing
   * without) has ended.
   * @throws BoundaryError, FencedError, the signal's reason; nothing is left then
   */
  async open(of: StageOfRollout, wanted: WantedSandbox, options: Opening, signal: AbortSignal): Promise<OpenSandbox> {
    const { task, spec, purpose } = wanted;
    const runtime = this.runtimeOf(task, of.config);
    const isEnvironment = options.keeps === true && resettingRuntimes.some((name) => name === runtime.name);
    const id = sandboxId(randomBytes(20));
    const full = sandboxSpec(id, spec, of.config, { ...of, purpose, isEnvironment });
    const environment = isEnvironment ? { fingerprint: fingerprintOf(runtime.name, full) } : {};
    if (environment.fingerprint !== undefined) {
      const again = await this.#openAgain(of, { ...options, fingerprint: environment.fingerprint }, signal);
      if (again !== null) return again;
    }
    const row = { id, purpose, runtime: runtime.name, image: imageText(spec), network: networkText(spec) };
    await planSandbox(this.#options.pool, { ...claimOf(of), ...row, ...environment, inPlace: options.inPlace });
    const place = { runtime, id, isEnvironment, image: row.image };
    return this.#ready(of, place, { phase: "open", make: () => runtime.open(full, signal) }, options);
  }

  /**
   * An environment of the run, as it was when it was opened. Null where the rollout was given none, or one that is not what it needs or
   * could not be reset: that one is closed, and a new one may take its place.
   */
  async #openAgain(
    of: StageOfRollout,
    options: Opening & { readonly fingerprint: string },
    signal: AbortSignal,
  ): Promise<OpenSandbox | null> {
    const taken = await takeEnvironment(this.#options.pool, claimOf(of), options);
    if (taken === null) return null;
    const { id } = taken;
    const runtime = this.#options.runtime(taken.runtime);
    const place = { runtime, id, isEnvironment: true, image: null };
    if (taken.fingerprint !== options.fingerprint) {
      await this.#giveUp(of, place, { reason: "the next rollout needs another kind of environment" });
      return null;
    }
    let isReset = false;
    const make = async () => {
      const sandbox = await runtime.attach(id, signal);
      if (sandbox.reset === undefined) throw new BoundaryError("sandbox", "refused", "it can't be reset");
      await sandbox.reset(signal);
      isReset = true;
      return sandbox;
    };
    try {
      return await this.#ready(of, place, { phase: "reset", make }, options);
    } catch (error) {
      if (isReset || signal.aborted || !(error instanceof BoundaryError)) throw error;
      this.#options.onTrouble(`environment ${id} was not reset; another is opened`, error);
      return null;
    }
  }

  /** Made and set up under its row; what does not get there is closed. */
  async #ready(of: StageOfRollout, place: Place, { phase, make }: Making, { prepare }: Opening): Promise<OpenSandbox> {
    const { pool, now } = this.#options;
    const { runtime, id, image } = place;
    const log = new SandboxLog(now);
    const phases: Record<string, number> = {};
    const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
      const startedAt = now();
      try {
        return await work();
      } finally {
        phases[name] = now() - startedAt;
      }
    };
    try {
      const opening = () => log.time(phase === "open" ? "open" : "note", `${runtime.name} ${image ?? phase}`, make);
      const sandbox = new LoggedSandbox(await timed(phase, opening), log);
      if (prepare) await timed("setUp", () => prepare(sandbox));
      await sandboxOpened(pool, claimOf(of), { id, phases });
      return { sandbox, log, runtime };
    } catch (error) {
      const told = withImage(error, image);
      await this.#giveUp(of, place, { reason: wordsOf(told), phases });
      throw told;
    }
  }

  /** An environment may have passed on to another rollout by now: then it is theirs. Never throws. */
  async #giveUp(
    of: StageOfRollout,
    { runtime, id, isEnvironment }: Place,
    end: { readonly reason: string; readonly phases?: SandboxPhases },
  ): Promise<void> {
    const { pool, onTrouble } = this.#options;
    if (!isEnvironment) return this.close(runtime, id, end);
    try {
      const isOurs = await sandboxEnded(pool, id, { state: "closed", ...end, claim: of.claim });
      if (isOurs) await runtime.close(id, AbortSignal.timeout(closeTimeoutMs));
    } catch (error) {
      onTrouble(`environment ${id} was not closed; it ends with its lease`, error);
    }
  }

  /**
   * The one the attempt's agent works in.
   * @throws BoundaryError("sandbox", "gone") when it is not there any more: the attempt is lost
   */
  async attachAgent(rolloutId: string, attempt: number, signal: AbortSignal): Promise<OpenSandbox> {
    const row = await agentSandbox(this.#options.pool, rolloutId, attempt);
    if (row === null) throw new BoundaryError("sandbox", "gone", "the agent's sandbox is not there any more");
    const runtime = this.#options.runtime(row.runtime);
    const log = new SandboxLog(this.#options.now);
    const attaching = () => runtime.attach(row.id, signal);
    return { sandbox: new LoggedSandbox(await log.time("attach", row.id, attaching), log), log, runtime };
  }

  /** Never throws: what could not be closed is the sweep's, and its own lease's. */
  async close(
    runtime: SandboxRuntime,
    id: string,
    { reason, phases = {} }: { readonly reason: string | null; readonly phases?: SandboxPhases },
  ): Promise<void> {
    const { pool, now, onTrouble } = this.#options;
    const startedAt = now();
    try {
      await runtime.close(id, AbortSignal.timeout(closeTimeoutMs));
      await sandboxEnded(pool, id, { state: "closed", reason, phases: { ...phases, close: now() - startedAt } });
    } catch (error) {
      onTrouble(`sandbox ${id} was not closed; the sweep will try again`, error);
    }
  }

  /** Stays for people to look into, as long as its row says; the sweep closes it then. Never throws. */
  async keep(id: string, reason: string): Promise<void> {
    try {
      await sandboxEnded(this.#options.pool, id, { state: "kept", reason });
    } catch (error) {
      this.#options.onTrouble(`sandbox ${id} was not kept`, error);
    }
  }
}

const claimOf = ({ runId, rolloutId, attempt, claim }: StageOfRollout) => ({ runId, rolloutId, attempt, claim });

/** People have to know which image can't be had: a reason without it gets its name. */
function withImage(error: unknown, image: string | null): unknown {
  if (image === null || !isLastingSandboxFailure(error) || error.message.includes(image)) return error;
  return new BoundaryError("sandbox", error.code, `${image}: ${error.message}`, { cause: error });
}

const wordsOf = (error: unknown): string =>
  error instanceof FencedError
    ? "its stage passed to another worker"
    : error instanceof Error
      ? error.message
      : String(error);
