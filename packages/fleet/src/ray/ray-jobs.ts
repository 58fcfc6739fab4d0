/**
 * Commands on a Ray cluster through its Jobs REST API. Invariants: every question ends within its limit and every answer is bounded;
 * nothing is tried again here. A submission whose answer was lost is asked for again under the same id: `job-exists` then means that
 * it is there.
 */
import type { IncomingMessage } from "node:http";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { askHttp, readBody } from "./ask-http.ts";
import {
  RayJobAnswer,
  type RayJobStatus,
  type RayNode,
  RayNodesAnswer,
  RayVersion,
  Stopped,
  Submitted,
} from "./ray-answers.ts";
import { failureOfAnswer, RayFailure } from "./ray-failure.ts";
import { readLog } from "./ray-log.ts";

export interface RayCluster {
  /** Of the dashboard: `http://10.0.0.7:8265`. */
  readonly url: string;
  /** Of a cluster that was started with RAY_AUTH_MODE=token. */
  readonly token?: string | undefined;
}

export interface RayJobSpec {
  /** A line for a shell on the cluster. */
  readonly entrypoint: string;
  /** As Ray has it: `env_vars`, `working_dir`, `pip`, … Whoever may use the cluster can read it. */
  readonly runtimeEnv?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Ours to choose, once on this cluster. */
  readonly submissionId: string;
  /** Set aside for the command itself: with none of these it runs on the head node. */
  readonly entrypointResources?: {
    readonly cpus?: number;
    readonly gpus?: number;
    readonly memoryMb?: number;
    /** Resources that the operator named: `{ "rack1": 0.001 }`. */
    readonly named?: Readonly<Record<string, number>>;
  };
}

/** Every call throws RayFailure, or its signal's reason. */
export interface RayJobs {
  version(signal?: AbortSignal): Promise<string>;
  /** Of the whole cluster, also those that are gone. */
  nodes(signal?: AbortSignal): Promise<RayNode[]>;
  submit(job: RayJobSpec, signal?: AbortSignal): Promise<{ readonly submissionId: string }>;
  status(id: string, signal?: AbortSignal): Promise<RayJobStatus>;
  /** Those that came through the Jobs API, ended ones as well. */
  list(signal?: AbortSignal): Promise<RayJobStatus[]>;
  /** The end of what it printed, about 2 MiB of it; empty before it runs. */
  logs(id: string, signal?: AbortSignal): Promise<string>;
  /**
   * Asks it to end: it has three seconds, then it is killed. One that waits for resources ends when it begins, or fails when Ray has
   * waited for 15 minutes. @returns false where it had ended already
   */
  stop(id: string, signal?: AbortSignal): Promise<boolean>;
  /** Forgets one that has ended. Idempotent. @throws RayFailure `still-running` */
  remove(id: string, signal?: AbortSignal): Promise<void>;
}

const answerMs = 20_000;
/** Ray waits for a node's agent before it takes a job. */
const submitMs = 60_000;
const answerBytes = 32 * 1024 * 1024;
/** Of one that says what went wrong. */
const failureBytes = 256 * 1024;
const logBytes = 2 * 1024 * 1024;

const Cluster = z.object({
  url: z
    .url({ protocol: /^https?$/, error: "must be the http or https address of a Ray dashboard" })
    .refine(
      (url) => !URL.canParse(url) || new URL(url).username === "",
      "must hold no password: the token is a field of its own",
    )
    .transform((url) => url.replace(/\/+$/, "")),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/, "must be one word of printable ASCII")
    .optional(),
});
const Spec = z.object({
  entrypoint: z.string().min(1).max(32_000),
  submissionId: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,119}$/, "must be letters, digits, _ and -, at most 120"),
});

/** @throws InputError for an address or a token that can't be one; nothing is asked yet */
export function connectRayJobs(cluster: RayCluster): RayJobs {
  const { url, token } = parsed(Cluster, cluster);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ask = <T>(what: string, path: string, read: Read<T>, question: Question = {}): Promise<T> =>
    answerOf(what, { ...question, url: `${url}${path}`, headers: { ...headers, ...question.headers } }, read);
  const of = (id: string, rest = ""): string => `/api/jobs/${encodeURIComponent(id)}${rest}`;
  return {
    version: async (signal) =>
      (await ask("asking its version", "/api/version", answers(RayVersion), { signal })).ray_version,
    nodes: (signal) => ask("listing nodes", "/api/v0/nodes?detail=1&limit=10000", answers(RayNodesAnswer), { signal }),
    submit: async (job, signal) => {
      const what = `submitting job ${parsed(Spec, job).submissionId}`;
      const headers = { "content-type": "application/json" };
      const question = { method: "POST", headers, body: submission(job), signal, limitMs: submitMs };
      return { submissionId: (await ask(what, "/api/jobs/", answers(Submitted), question)).submission_id };
    },
    status: (id, signal) => ask(`looking at job ${id}`, of(id), answers(RayJobAnswer), { signal }),
    list: async (signal) => {
      const jobs = await ask("listing jobs", "/api/jobs/", answers(z.array(RayJobAnswer)), { signal });
      return jobs.filter(({ submissionId }) => submissionId !== null);
    },
    logs: (id, signal) =>
      ask(`reading the log of job ${id}`, of(id, "/logs"), (answer) => readLog(answer, logBytes), { signal }),
    stop: async (id, signal) =>
      (await ask(`stopping job ${id}`, of(id, "/stop"), answers(Stopped), { method: "POST", signal })).stopped,
    remove: async (id, signal) => {
      const removal = ask(`removing job ${id}`, of(id), answers(z.unknown()), { method: "DELETE", signal });
      await removal.catch((error: unknown) => {
        if (!(error instanceof RayFailure) || error.code !== "no-job") throw error;
      });
    },
  };
}

function submission(job: RayJobSpec): string {
  const { cpus, gpus, memoryMb, named } = job.entrypointResources ?? {};
  return JSON.stringify({
    entrypoint: job.entrypoint,
    submission_id: job.submissionId,
    runtime_env: job.runtimeEnv ?? {},
    metadata: job.metadata ?? {},
    entrypoint_num_cpus: cpus,
    entrypoint_num_gpus: gpus,
    entrypoint_memory: memoryMb === undefined ? undefined : memoryMb * 1024 * 1024,
    entrypoint_resources: named,
  });
}

interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  readonly limitMs?: number;
}
/** @throws anything for an answer that is not Ray's */
type Read<T> = (answer: IncomingMessage) => Promise<T>;

const answers =
  <T extends z.ZodType>(schema: T): Read<z.output<T>> =>
  async (answer) =>
    schema.parse(JSON.parse(await readBody(answer, answerBytes)));

async function answerOf<T>(what: string, question: Question & { readonly url: string }, read: Read<T>): Promise<T> {
  const { url, method, headers, body, signal, limitMs = answerMs } = question;
  const limit = AbortSignal.timeout(limitMs);
  const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  const at = new URL(url).host;
  let answered = false;
  try {
    const answer = await askHttp({ url, method, headers, body, signal: either });
    answered = true;
    const status = answer.statusCode ?? 0;
    if (status < 200 || status > 299) throw failureOfAnswer(what, status, await readBody(answer, failureBytes));
    return await read(answer);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof RayFailure) throw error;
    if (limit.aborted)
      throw new RayFailure("unavailable", `${what}: no answer of Ray at ${at} in ${limitMs / 1_000} s`, error);
    const isBroken = error instanceof Error && "code" in error;
    if (!answered || isBroken)
      throw new RayFailure("unavailable", `${what}: Ray at ${at} does not answer (${wordsOf(error)})`, error);
    const message = `${what}: what answers at ${at} is not Ray's Jobs API (${wordsOf(error)})`;
    throw new RayFailure("strange-answer", message, error);
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof z.ZodError)
    return error.issues
      .map(({ path }) => path.join(".") || "all of it")
      .slice(0, 5)
      .join(", ");
  return error instanceof Error ? error.message.slice(0, 200) : String(error);
}

function parsed<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new InputError(read.error.issues.map(({ path, message }) => ({ path: path.join("."), message })));
}
