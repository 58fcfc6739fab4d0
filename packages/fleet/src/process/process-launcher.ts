/**
 * GPU workers as processes of this machine, each under a keeper that outlives us. Invariants: a launch that fails leaves no process and
 * no folder; what belongs to another fleet is not seen and not touched; no process is signalled but one that carries its placement's
 * mark; a worker listens on loopback alone and has of our environment only what programs need. It has the account of this server: what
 * that may read and write, it may.
 */
import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isLoopback } from "@rolldeck/contracts/host-endpoint";
import type { HostFacts, LaunchSpec, LogOptions, SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { LaunchFailure } from "../launch-failure.ts";
import { isMarked, markedProcesses, processStart, signalMarked } from "./marked-processes.ts";
import { makePlacement, namesIn, readPlacement } from "./placement-folder.ts";
import { followLog, logEnd } from "./process-log.ts";
import { readMachine } from "./read-machine.ts";
import { keeperCommand, workerEnvironment } from "./worker-command.ts";

/** What this machine starts workers with. */
export interface LocalWorkers {
  /** An interpreter that can run the GPU worker; made first where there is none. @throws Error that says what to do */
  python(): Promise<string>;
  /** Has the Python package `rolldeck_gpu_worker`. */
  readonly source: string;
  /** For what workers save, and what is known of them. */
  readonly folder: string;
  /** Folders of model folders, with colons between. */
  readonly modelRoots: string;
  /** In place of the worker's own module, as a shell would read it. */
  readonly worker?: string;
}

export interface ProcessHost {
  readonly name: string;
  /** Which workers are ours: the id of the deployment. */
  readonly fleet: string;
  readonly local: LocalWorkers;
}

const mark = "ROLLDECK_FLEET_PLACEMENT";
/** Until it listens: its libraries take their time to load. */
const startMs = 300_000;
const pollMs = 100;
/** Until the kernel has ended what was killed. */
const killedMs = 20_000;

export class ProcessLauncher implements WorkerLauncher {
  readonly #host: ProcessHost;

  constructor(host: ProcessHost) {
    this.#host = host;
  }

  async facts(signal: AbortSignal): Promise<HostFacts> {
    await this.#needProc();
    return readMachine(signal);
  }

  async seen(): Promise<SeenWorker[]> {
    await this.#needProc();
    const names = await namesIn(this.#placements);
    const seen = await Promise.all(names.map((name) => this.#look(name)));
    return seen.filter((one) => one !== null);
  }

  async #look(containerId: string): Promise<SeenWorker | null> {
    const state = await readPlacement(this.#folderOf(containerId));
    if (state === null) return null;
    const { placement, running, ended } = state;
    const { workerId, claim, devices } = placement;
    const facts = running === null ? [] : [running.keeper, running.worker];
    const lives = await Promise.all(facts.map((fact) => isMarked(fact, this.#markOf(containerId))));
    const runs = ended === null && lives.includes(true);
    // One that nobody has started yet, or never will.
    const isMade = running === null && ended === null;
    return {
      ...{ containerId, workerId, claim, devices, state: runs ? "running" : isMade ? "created" : "ended" },
      url: runs && running !== null ? loopbackUrl(running.url) : null,
      exitCode: ended?.exitCode ?? null,
      outOfMemory: ended?.outOfMemory ?? false,
    };
  }

  async launch(spec: LaunchSpec, signal: AbortSignal): Promise<{ readonly containerId: string; readonly url: string }> {
    if (spec.device === "gpu") await this.#needGpus(spec, signal);
    const python = await this.#python();
    const containerId = `${spec.workerId}-${spec.claim}`.replaceAll(/[^A-Za-z0-9_-]+/g, "_");
    // A launch of the same placement that was cut off half-way.
    await this.#removeNow(containerId, 0);
    try {
      const { workerId, claim, runId, devices } = spec;
      await makePlacement(this.#folderOf(containerId), { workerId, claim, runId, devices: [...devices] });
      await this.#start(containerId, python, spec);
      return { containerId, url: await this.#listening(containerId, signal) };
    } catch (error) {
      await this.#removeNow(containerId, 0).catch(() => undefined);
      signal.throwIfAborted();
      throw error instanceof LaunchFailure ? error : this.#failed(`${wordsOf(error)}`, error);
    }
  }

  async #start(containerId: string, python: string, spec: LaunchSpec): Promise<void> {
    const { local } = this.#host;
    const { command, args } = keeperCommand(spec, {
      ...{ python, worker: local.worker, modelRoots: local.modelRoots },
      ...{ folder: this.#folderOf(containerId), saved: this.#savedOf(spec, spec.runId) },
      reads: spec.reads.map((runId) => this.#savedOf(spec, runId)),
    });
    const [name = "", value = ""] = this.#markOf(containerId).split("=");
    const env = workerEnvironment(process.env, spec, local.source);
    // A session of its own: neither Ctrl-C in our terminal nor our end is its end.
    const options = { cwd: local.source, env: { ...env, [name]: value }, detached: true, stdio: "ignore" } as const;
    const child = spawn(command, args, options);
    await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
    child.unref();
  }

  async #listening(containerId: string, signal: AbortSignal): Promise<string> {
    for (const begun = performance.now(); performance.now() - begun < startMs; ) {
      const seen = await this.#look(containerId);
      if (seen?.url) return seen.url;
      // Its keeper was not there to write down how it ended, or it never came so far.
      const isGone = seen?.state !== "running" && (await markedProcesses(this.#markOf(containerId))).length === 0;
      if (seen?.state === "ended" || isGone) throw await this.#endedAtOnce(containerId);
      await delay(pollMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
    throw this.#failed(`it did not listen within ${startMs / 60_000} minutes`);
  }

  async #endedAtOnce(containerId: string): Promise<LaunchFailure> {
    const seen = await this.#look(containerId);
    const lines = await logEnd(this.#folderOf(containerId), 1);
    const last = lines.length === 0 ? "" : `: ${lines.join(" ").slice(0, 300)}`;
    const code = seen?.exitCode == null ? "" : ` with ${seen.exitCode}`;
    return this.#failed(`it ended at once${code}${last}`);
  }

  async #needGpus({ devices }: LaunchSpec, signal: AbortSignal): Promise<void> {
    const { gpus, probeTrouble } = await readMachine(signal);
    if (devices.every((uuid) => gpus.some((gpu) => gpu.uuid === uuid))) return;
    const why = probeTrouble === null ? "" : ` (${probeTrouble})`;
    throw new LaunchFailure({
      code: "no-gpu-runtime",
      message: `needs a GPU that this machine does not have${why}`,
      remedy: "check that nvidia-smi lists it for the account of this server; or ask for device cpu",
    });
  }

  async #python(): Promise<string> {
    try {
      return await this.#host.local.python();
    } catch (cause) {
      const message = `no Python that can run a worker on ${this.#host.name}: ${wordsOf(cause)}`.slice(0, 600);
      const remedy = "see what `npm start` says of its GPU worker, or set ROLLDECK_PYTHON";
      throw new LaunchFailure({ code: "no-image", message, remedy }, { cause });
    }
  }

  async remove(containerId: string, graceMs: number): Promise<void> {
    await this.#removeNow(containerId, graceMs);
  }

  /** Returns once all of its processes are gone: its devices are free only then. */
  async #removeNow(containerId: string, graceMs: number): Promise<void> {
    const folder = this.#folderOf(containerId);
    const mark = this.#markOf(containerId);
    const keeper = (await readPlacement(folder))?.running?.keeper;
    // It passes the request on. Where it is gone, whoever is left is asked.
    if (keeper !== undefined && graceMs > 0 && (await isMarked(keeper, mark)))
      await signalMarked(keeper, mark, "SIGTERM");
    else if (graceMs > 0) for (const one of await markedProcesses(mark)) await signalMarked(one, mark, "SIGTERM");
    if (!(await this.#gone(mark, graceMs))) {
      for (const one of await markedProcesses(mark)) await signalMarked(one, mark, "SIGKILL");
      if (!(await this.#gone(mark, killedMs))) throw this.#failed(`${containerId} is still there after it was killed`);
    }
    await rm(folder, { recursive: true, force: true });
  }

  async #gone(mark: string, limitMs: number): Promise<boolean> {
    for (const begun = performance.now(); ; ) {
      if ((await markedProcesses(mark)).length === 0) return true;
      if (performance.now() - begun >= limitMs) return false;
      await delay(pollMs);
    }
  }

  /** What lies in a folder that the operator named is the operator's. */
  async forgetRun(runId: string): Promise<void> {
    await rm(path.join(this.#own, "runs", safe(runId)), { recursive: true, force: true });
  }

  async *logs(containerId: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<string> {
    const folder = this.#folderOf(containerId);
    if (!options.follow) {
      yield* await logEnd(folder, options.tail);
      return;
    }
    const runs = async (): Promise<boolean> => (await this.#look(containerId))?.state === "running";
    yield* followLog(folder, options.tail, runs, signal);
  }

  /** Each fleet has its own: a copy of the database beside this one has another id. */
  get #own(): string {
    return path.join(this.#host.local.folder, safe(this.#host.fleet));
  }
  get #placements(): string {
    return path.join(this.#own, "placements");
  }
  #folderOf(containerId: string): string {
    return path.join(this.#placements, safe(containerId));
  }
  #savedOf({ checkpointFolder }: LaunchSpec, runId: string): string {
    return checkpointFolder === null
      ? path.join(this.#own, "runs", safe(runId))
      : path.join(checkpointFolder, safe(runId));
  }
  #markOf(containerId: string): string {
    return `${mark}=${this.#host.fleet}/${containerId}`;
  }

  /** @throws LaunchFailure where processes can't be told from each other */
  async #needProc(): Promise<void> {
    if ((await processStart(process.pid)) !== null) return;
    const message = "workers as processes need /proc, as Linux has it";
    throw new LaunchFailure({ code: "unavailable", message, remedy: "register Docker on this machine in its place" });
  }

  #failed(message: string, cause?: unknown): LaunchFailure {
    const words = `${message} (${this.#host.name})`.slice(0, 600);
    return new LaunchFailure({ code: "launch-failed", message: words, remedy: null }, { cause });
  }
}

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 400);

/** One name of a file, whatever an id holds. */
const safe = (id: string): string => id.replaceAll(/[^A-Za-z0-9_-]+/g, "_");

/** What a process says of itself is believed only as far as it can't lead elsewhere. */
function loopbackUrl(url: string | null): string | null {
  if (url === null || !URL.canParse(url)) return null;
  const { protocol, hostname, port } = new URL(url);
  const isOurs = protocol === "http:" && isLoopback(hostname.replace(/^\[|\]$/g, "")) && port !== "";
  return isOurs ? `http://${hostname}:${port}` : null;
}
