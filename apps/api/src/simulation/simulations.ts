/**
 * Simulations of this process. Invariants: at most two are played at once, each in a thread of its own, none longer than its limit;
 * one that is stopped or over has no thread; the newest twenty are remembered.
 */
import { randomBytes } from "node:crypto";
import type { Worker } from "node:worker_threads";
import type { SimulationInfo } from "@rolldeck/contracts/api/simulations";
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { startThread } from "./start-thread.ts";
import { FromThread, type SimulationTask } from "./thread-message.ts";

const maxPlayed = 2;
const maxKept = 20;

interface Entry {
  info: SimulationInfo;
  readonly startedAt: number;
  thread: Worker | null;
  timer: NodeJS.Timeout | null;
}

export class Simulations {
  readonly #entries = new Map<string, Entry>();
  readonly #limitMs: number;

  constructor(limitMs = 30_000) {
    this.#limitMs = limitMs;
  }

  /** @throws ConflictError while enough others are played */
  start(runId: string, task: SimulationTask): SimulationInfo {
    const playing = [...this.#entries.values()].filter(({ thread }) => thread !== null).length;
    if (playing >= maxPlayed)
      throw new ConflictError(`${playing} simulations are played already: wait for one, or stop it.`);
    const simulationId = randomBytes(10).toString("hex");
    const [startedAt, thread] = [performance.now(), startThread(task)];
    const info: SimulationInfo = {
      ...{ simulationId, runId, state: "running", played: 0, elapsedMs: 0, reason: null, result: null },
    };
    const entry: Entry = { info, startedAt, thread, timer: null };
    entry.timer = setTimeout(() => this.#end(entry, { state: "failed", reason: this.#tooLong() }), this.#limitMs);
    this.#entries.set(simulationId, entry);
    thread.on("message", (message: unknown) => this.#hear(entry, FromThread.parse(message)));
    thread.on("error", (error) => this.#end(entry, { state: "failed", reason: reasonOf(error) }));
    thread.on("exit", () => this.#end(entry, { state: "failed", reason: "The simulation ended without an answer." }));
    thread.unref();
    this.#forgetOld();
    return info;
  }

  /** @throws NotFoundError */
  get(simulationId: string): SimulationInfo {
    const entry = this.#entries.get(simulationId);
    if (entry === undefined) throw new NotFoundError("simulation", simulationId);
    if (entry.thread === null) return entry.info;
    return { ...entry.info, elapsedMs: performance.now() - entry.startedAt };
  }

  /** One that is over stays as it is. @throws NotFoundError */
  cancel(simulationId: string): SimulationInfo {
    const entry = this.#entries.get(simulationId);
    if (entry === undefined) throw new NotFoundError("simulation", simulationId);
    this.#end(entry, { state: "cancelled" });
    return entry.info;
  }

  close(): void {
    for (const entry of this.#entries.values()) this.#end(entry, { state: "cancelled" });
  }

  #hear(entry: Entry, message: FromThread): void {
    if ("played" in message) entry.info = { ...entry.info, played: message.played };
    else if ("result" in message) this.#end(entry, { state: "done", result: message.result });
    else this.#end(entry, { state: "failed", reason: message.failed });
  }

  #end(entry: Entry, end: Pick<SimulationInfo, "state"> & Partial<SimulationInfo>): void {
    if (entry.thread === null) return;
    const { thread } = entry;
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.thread = null;
    entry.info = { ...entry.info, ...end, elapsedMs: performance.now() - entry.startedAt };
    void thread.terminate();
  }

  #tooLong(): string {
    return `It was not over after ${this.#limitMs / 1000} s. Choose fewer policies, or play each once.`;
  }

  #forgetOld(): void {
    for (const [id, { thread }] of this.#entries) {
      if (this.#entries.size <= maxKept) return;
      if (thread === null) this.#entries.delete(id);
    }
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY"
    ? "It needed more memory than a simulation may have."
    : error instanceof Error
      ? error.message
      : String(error);
