/**
 * Sandboxes that only take time: a command `wait <stage>` ends after the stage's duration of the rollout whose sandbox it is. So
 * every slot, lease, row and message of a rollout is real, and what its work would cost this machine is not.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import {
  type ExecResult,
  type Sandbox,
  type SandboxFact,
  SandboxFileError,
  type SandboxRuntime,
  type SandboxSpec,
} from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";

export interface TimedRollout {
  /** Of a stage's own work. */
  readonly stageMs: Readonly<Record<Stage, number>>;
  /** What `wait` ends with: the verifier makes the reward of it. */
  readonly exitCode: number;
}
export type TimedRollouts = (rolloutId: string) => Promise<TimedRollout>;
/** Spends a stage's time. */
export type Waits = (stage: Stage, ms: number, signal: AbortSignal) => Promise<void>;

const Command = z.tuple([z.literal("wait"), z.enum(stages)]);
const nothing = { head: new Uint8Array(), gapBytes: 0, tail: new Uint8Array(), bytes: 0 };

export class TimedRuntime implements SandboxRuntime {
  /** Rows know only runtimes that there are. */
  readonly name = "process";
  readonly isolation = "none: it only waits";
  readonly limits = [];
  readonly #rollouts: TimedRollouts;
  readonly #waits: Waits;
  readonly #open = new Map<string, SandboxSpec>();
  readonly #createdAtMs = new Map<string, number>();

  /** @param waits default: the time passes here */
  constructor(rollouts: TimedRollouts, waits: Waits = (_stage, ms, signal) => waited(ms, signal)) {
    this.#rollouts = rollouts;
    this.#waits = waits;
  }

  ailment = async (): Promise<null> => null;
  disconnect = async (): Promise<void> => undefined;

  async open(spec: SandboxSpec): Promise<Sandbox> {
    this.#open.set(spec.id, spec);
    this.#createdAtMs.set(spec.id, Date.now());
    return this.#sandbox(spec);
  }

  async attach(id: string): Promise<Sandbox> {
    const spec = this.#open.get(id);
    if (spec === undefined) throw new BoundaryError("sandbox", "gone", `there is no sandbox ${id}`);
    return this.#sandbox(spec);
  }

  async renew(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set(ids.filter((id) => this.#open.has(id)));
  }

  async close(id: string): Promise<void> {
    this.#open.delete(id);
    this.#createdAtMs.delete(id);
  }

  async list(): Promise<readonly SandboxFact[]> {
    return [...this.#open.values()].map(({ id, labels }) => ({
      id,
      labels,
      state: "running",
      createdAtMs: this.#createdAtMs.get(id) ?? 0,
    }));
  }

  #sandbox({ id, labels }: SandboxSpec): Sandbox {
    const noFiles = async (path: string): Promise<never> => {
      throw new SandboxFileError("not_found", path, "a timed sandbox has no files");
    };
    return {
      id,
      runtime: this.name,
      workdir: "/",
      exec: async ({ command }, signal) => {
        const [, stage] = Command.parse(command);
        const { stageMs, exitCode } = await this.#rollouts(labels.rollout ?? "");
        await this.#waits(stage, stageMs[stage], signal);
        return ended(stageMs[stage], exitCode);
      },
      spawn: () => noFiles("/"),
      killAll: async () => undefined,
      readFile: noFiles,
      writeFile: noFiles,
      putArchive: noFiles,
      getArchive: noFiles,
    };
  }
}

const ended = (durationMs: number, exitCode: number): ExecResult => ({
  exitCode,
  timedOut: false,
  flooded: false,
  outOfMemory: false,
  stdout: nothing,
  stderr: nothing,
  durationMs,
});

export function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(done, ms);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    function done(): void {
      signal.removeEventListener("abort", abort);
      resolve();
    }
    signal.addEventListener("abort", abort, { once: true });
  });
}
