/**
 * GPU workers as jobs of a Ray cluster. Invariants: what belongs to another fleet is not seen and not touched; a launch that fails asks
 * Ray to take its job back, and what Ray has not let go of by then is seen as nobody's, and removed later. Which GPU a job gets is Ray's
 * to say, so that a device here is one of so many; a job that no node takes is given back.
 */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { RayEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { HostFacts, LaunchSpec, LogOptions, SeenWorker, WorkerLauncher } from "@rolldeck/contracts/ports/fleet";
import { LaunchFailure } from "../launch-failure.ts";
import { endedRayJobStates, type RayJobStatus } from "./ray-answers.ts";
import { RayFailure } from "./ray-failure.ts";
import { connectRayJobs, type RayJobs } from "./ray-jobs.ts";
import { factsOf, gpusOf, isOfFleet, saidUrl, seenWorker, submissionId, workerJob, workerUrl } from "./ray-worker.ts";

export interface RayHost {
  readonly name: string;
  readonly endpoint: RayEndpoint;
  /** Which workers are ours: the id of the deployment. */
  readonly fleet: string;
  /** Between looks at a job that starts or ends. */
  readonly pollMs?: number;
  /** Between looks at a log: Ray answers with all of it. */
  readonly logPollMs?: number;
  /** A job that no node takes for so long is given back: others of its size may fit elsewhere. */
  readonly pendingMs?: number;
}

/** Until it listens: its libraries take their time to load, and Ray to make its environment. */
const startMs = 900_000;
/** Beyond the time that it has to save. */
const goneMs = 60_000;
/** Ray looks at its jobs once a second; one that is removed before it was seen to have ended is written down anew, as failed. */
const settledMs = 2_500;
/** Ray takes note that one that waits is to end, and lets go of it in its own time. */
const waitingMs = 3_000;
/** Below those that systems give away by themselves. */
const ports = [20_000, 32_000] as const;

export class RayLauncher implements WorkerLauncher {
  readonly #host: RayHost;

  constructor(host: RayHost) {
    this.#host = host;
  }

  /** The token is read anew: it may be changed while the server runs. @throws LaunchFailure */
  #jobs(): RayJobs {
    const { url, tokenFile } = this.#host.endpoint;
    if (tokenFile === null) return connectRayJobs({ url });
    try {
      return connectRayJobs({ url, token: readFileSync(tokenFile, "utf8").trim() });
    } catch (cause) {
      const message = `the token in ${tokenFile} can't be used: ${cause instanceof Error ? cause.message : String(cause)}`;
      const remedy = "put what `ray get-auth-token` prints there, readable by the account of this server";
      throw new LaunchFailure(
        { code: "unavailable", message: message.slice(0, 600), remedy },
        { cause, retryable: true },
      );
    }
  }

  async facts(signal: AbortSignal): Promise<HostFacts> {
    const jobs = this.#jobs();
    const asked = Promise.all([jobs.version(signal), jobs.nodes(signal)]);
    const [version, nodes] = await this.#inOurWords(asked);
    return factsOf(this.#host.name, version, nodes);
  }

  async seen(signal: AbortSignal): Promise<SeenWorker[]> {
    const { fleet, endpoint } = this.#host;
    const jobs = await this.#inOurWords(this.#jobs().list(signal));
    return jobs.map((job) => seenWorker(job, fleet, endpoint)).filter((one) => one !== null);
  }

  async launch(spec: LaunchSpec, signal: AbortSignal): Promise<{ readonly containerId: string; readonly url: string }> {
    const { name: host, fleet, endpoint } = this.#host;
    const jobs = this.#jobs();
    const job = workerJob(spec, { fleet, host, endpoint, port: randomInt(...ports) });
    const id = submissionId(fleet, spec);
    if (spec.device === "gpu") await this.#needGpus(jobs, spec.devices.length, signal);
    // A launch of the same placement that was cut off half-way.
    await this.#removeNow(jobs, id, signal);
    try {
      await this.#inOurWords(jobs.submit(job, signal));
      return { containerId: id, url: await this.#listening(jobs, id, signal) };
    } catch (error) {
      await this.#removeNow(jobs, id, AbortSignal.timeout(goneMs)).catch(() => undefined);
      signal.throwIfAborted();
      throw error;
    }
  }

  /** @throws LaunchFailure before anything is submitted: a job that waits can't be taken back for a quarter of an hour */
  async #needGpus(jobs: RayJobs, count: number, signal: AbortSignal): Promise<void> {
    const nodes = (await this.#inOurWords(jobs.nodes(signal))).filter(({ lives }) => lives);
    const most = Math.max(0, ...nodes.map(gpusOf));
    if (most >= count) return;
    const { name } = this.#host;
    const noGpu = {
      code: "no-gpu-runtime",
      message: `needs a GPU; no node of ${name} offers Ray one`,
      remedy: "start Ray on the nodes with their GPUs (--num-gpus), or ask for device cpu",
    } as const;
    if (most === 0) throw new LaunchFailure(noGpu);
    throw this.#failed(`needs ${count} GPUs on one node; none of ${name} has more than ${most}`);
  }

  async #listening(jobs: RayJobs, id: string, signal: AbortSignal): Promise<string> {
    const begun = performance.now();
    for (let passed = 0; passed < startMs; passed = performance.now() - begun) {
      const job = await this.#inOurWords(jobs.status(id, signal));
      if (endedRayJobStates.includes(job.state)) throw await this.#endedAtOnce(jobs, job, id, signal);
      if (job.state === "pending" && passed > (this.#host.pendingMs ?? 120_000))
        throw this.#failed(`no node of ${this.#host.name} takes it: ${job.message.slice(0, 300)}`, true);
      const said = job.state === "running" ? saidUrl(await this.#inOurWords(jobs.logs(id, signal)), job) : null;
      if (said !== null) return this.#agreed(job, said);
      await pause(this.#pollMs, signal);
    }
    throw this.#failed(`job ${id} did not listen within ${startMs / 60_000} minutes`, true);
  }

  /** What finds it later is what Ray says of its node: both must be one place. @throws LaunchFailure */
  #agreed(job: RayJobStatus, said: string): string {
    const url = workerUrl(job, this.#host.endpoint);
    if (url === said) return url;
    const { name } = this.#host;
    if (url === null)
      throw this.#failed(`a worker of ${name} listens at ${said}; on node ${job.node} it can't be reached from here`);
    throw new LaunchFailure({
      code: "launch-failed",
      message: `a worker of ${name} listens at ${said}, and Ray says that its node is ${job.node}`.slice(0, 600),
      remedy: "start Ray on that node with the address of the private network: --node-ip-address",
    });
  }

  async #endedAtOnce(jobs: RayJobs, job: RayJobStatus, id: string, signal: AbortSignal): Promise<LaunchFailure> {
    const log = await jobs.logs(id, signal).catch(() => "");
    // Before these may stand what an earlier job of this name said.
    const lines = log.trimEnd().split("\n").slice(-5);
    const last = lines.at(-1) || job.message;
    const code = job.exitCode === null ? "" : ` with ${job.exitCode}`;
    const words = `it ended at once on ${this.#host.name}${code}: ${last.slice(0, 400)}`;
    // The shell's words, and Python's.
    const isMissing = job.exitCode === 127 || /No module named '?rolldeck_gpu_worker\b/.test(lines.join("\n"));
    if (!isMissing) return this.#failed(words);
    const remedy = "install infra/gpu-worker for the nodes' Python, or say with --entrypoint what starts it there";
    return new LaunchFailure({ code: "no-image", message: words.slice(0, 600), remedy });
  }

  #failed(message: string, retryable = false): LaunchFailure {
    return new LaunchFailure({ code: "launch-failed", message: message.slice(0, 600), remedy: null }, { retryable });
  }

  get #pollMs(): number {
    return this.#host.pollMs ?? 1_000;
  }

  /** How long it has to save is a setting of the job; @param graceMs is what we wait for it beyond the usual */
  async remove(containerId: string, graceMs: number, signal: AbortSignal): Promise<void> {
    await this.#removeNow(this.#jobs(), containerId, signal, graceMs);
  }

  /** Returns once it is gone: its devices are free only then. */
  async #removeNow(jobs: RayJobs, id: string, signal: AbortSignal, graceMs = 0): Promise<void> {
    const begun = performance.now();
    for (let isAsked = false, endedAt: number | null = null; ; ) {
      const job = await this.#inOurWords(this.#unlessGone(jobs.status(id, signal)));
      if (job === null) return;
      if (!isOfFleet(job, this.#host.fleet))
        throw this.#failed(`job ${id} of ${this.#host.name} is not of this fleet and is left alone`);
      const now = performance.now();
      if (endedRayJobStates.includes(job.state)) {
        endedAt ??= now;
        // Looked for again: it is gone when Ray says so.
        if (now - endedAt >= settledMs) await this.#inOurWords(jobs.remove(id, signal));
      } else if (!isAsked) {
        await this.#inOurWords(this.#unlessGone(jobs.stop(id, signal)));
        isAsked = true;
      }
      if (now - begun > (job.state === "pending" ? waitingMs : graceMs + goneMs)) break;
      await pause(this.#pollMs, signal);
    }
    throw this.#failed(`Ray on ${this.#host.name} has not let go of job ${id}`, true);
  }

  async #unlessGone<T>(call: Promise<T>): Promise<T | null> {
    try {
      return await call;
    } catch (error) {
      if (error instanceof RayFailure && error.code === "no-job") return null;
      throw error;
    }
  }

  /** What it saved lies in the operator's folder, as on a cluster of Kubernetes: it stays. */
  async forgetRun(): Promise<void> {}

  async *logs(containerId: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<string> {
    const jobs = this.#jobs();
    let last: string | null = null;
    for (let isFirst = true; ; isFirst = false) {
      // In this order: what was said before the end is read.
      const job = options.follow ? await this.#inOurWords(this.#unlessGone(jobs.status(containerId, signal))) : null;
      const text = await this.#inOurWords(this.#unlessGone(jobs.logs(containerId, signal)));
      if (text === null) return;
      const runs = job !== null && !endedRayJobStates.includes(job.state);
      const lines = wholeLines(text, runs);
      const fresh = isFirst ? (options.tail === 0 ? [] : lines.slice(-options.tail)) : newerThan(lines, last);
      yield* fresh;
      last = lines.at(-1) ?? last;
      if (!runs) return;
      await delay(this.#host.logPollMs ?? 5_000, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  async #inOurWords<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (!(error instanceof RayFailure)) throw error;
      const isAway = ["unavailable", "unauthorized", "strange-answer"].includes(error.code);
      const remedy = isAway ? "check that the address is that of the cluster's dashboard, and the token its own" : null;
      const message = `${this.#host.name}: ${error.message}`.slice(0, 600);
      throw new LaunchFailure(
        { code: isAway ? "unavailable" : "launch-failed", message, remedy },
        { cause: error, retryable: isAway || error.retryable },
      );
    }
  }
}

/** Each at most as long as is kept. @param grows its last line may go on */
function wholeLines(text: string, grows: boolean): string[] {
  const lines = text.split("\n");
  const rest = lines.pop() ?? "";
  if (!grows && rest !== "") lines.push(rest);
  return lines.map((line) => line.slice(0, 4_000));
}

/** Lines begin with their times, so that none comes twice. Where the last is no longer kept, all that is there is newer. */
const newerThan = (lines: readonly string[], last: string | null): readonly string[] =>
  last === null ? lines : lines.slice(lines.lastIndexOf(last) + 1);

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
