/**
 * Sandboxes of rollouts: opened and closed together with their rows. Invariants: the row comes before the sandbox and is closed
 * after it, so a crash at any point leaves a row that the sweep acts on and a lease that ends by itself; whatever goes wrong
 * while opening leaves nothing behind.
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
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { planSandbox, type SandboxPhases, sandboxEnded, sandboxOpened } from "@rolldeck/db/hot/sandboxes";
import { agentSandbox } from "@rolldeck/db/reads/live-sandboxes";
import { LoggedSandbox, SandboxLog } from "./logged-sandbox.ts";
import { imageText, networkText, runtimeNameOf, sandboxSpec } from "./sandbox-spec.ts";

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

const closeTimeoutMs = 60_000;

export class RolloutSandboxes {
  readonly #options: RolloutSandboxesOptions;

  constructor(options: RolloutSandboxesOptions) {
    this.#options = options;
  }

  /** @throws BoundaryError("sandbox") when this server has none of that kind */
  runtimeOf(task: Pick<Task, "sandbox">, config: ClaimedStage["config"]): SandboxRuntime {
    return this.#options.runtime(runtimeNameOf(task, config, this.#options.imageRuntime));
  }

  /**
   * A new one, with its row. It is in use when `prepare` (set-up that it is worth nothing without) has ended.
   * @throws BoundaryError, FencedError, the signal's reason; nothing is left then
   */
  async open(
    of: StageOfRollout,
    wanted: { readonly task: Pick<Task, "sandbox">; readonly spec: TaskSandbox; readonly purpose: SandboxPurpose },
    options: { readonly inPlace: boolean; readonly prepare?: (sandbox: Sandbox) => Promise<void> },
    signal: AbortSignal,
  ): Promise<OpenSandbox> {
    const { pool, now } = this.#options;
    const { task, spec, purpose } = wanted;
    const runtime = this.runtimeOf(task, of.config);
    const id = sandboxId(randomBytes(20));
    const row = { id, purpose, runtime: runtime.name, image: imageText(spec), network: networkText(spec) };
    await planSandbox(pool, { ...claimOf(of), ...row, inPlace: options.inPlace });
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
      const full = sandboxSpec(id, spec, of.config, { ...of, purpose });
      const opening = () => log.time("open", `${runtime.name} ${row.image ?? ""}`, () => runtime.open(full, signal));
      const sandbox = new LoggedSandbox(await timed("open", opening), log);
      const { prepare } = options;
      if (prepare) await timed("setUp", () => prepare(sandbox));
      await sandboxOpened(pool, claimOf(of), { id, phases });
      return { sandbox, log, runtime };
    } catch (error) {
      const told = withImage(error, row.image);
      await this.close(runtime, id, { reason: wordsOf(told), phases });
      throw told;
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
