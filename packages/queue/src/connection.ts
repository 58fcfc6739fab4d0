/**
 * Where queues live: in the same Postgres database through the process's pool, or in Redis. Callers see one port; which of
 * the two it is decides only speed.
 */
import { randomUUID } from "node:crypto";
import type { QueueName } from "@rolldeck/contracts/jobs";
import { createPostgresBackend, type JobsOptions, Queue, runMigrations, Worker, withBackend } from "bullmq";
import { Redis, type RedisOptions } from "ioredis";
import type pg from "pg";
import { queueSchema, SharedPool } from "./shared-pool.ts";

/** One job as a queue takes it. `id` never holds a colon: BullMQ reserves it. */
export interface NewJob {
  readonly name: string;
  readonly data: unknown;
  readonly opts: JobsOptions;
}
export interface JobQueue {
  add(job: NewJob): Promise<void>;
  addAll(jobs: readonly NewJob[]): Promise<void>;
  close(): Promise<void>;
}
export interface JobWorker {
  /** Starts to fetch; resolves when the worker was closed. */
  run(): Promise<void>;
  /** No new jobs from now on; those that run go on. */
  pause(): Promise<void>;
  /** `force` leaves running jobs behind: their locks expire and another worker gets them. */
  close(force: boolean): Promise<void>;
}
export interface WorkerSettings {
  readonly concurrency: number;
  /** A job whose worker renews nothing for this long counts as stalled and is delivered again. */
  readonly lockMs: number;
  readonly stalledCheckMs: number;
  readonly process: (name: string, data: unknown, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: Error) => void;
}
interface Opens {
  openQueue(name: QueueName, onError: (error: Error) => void): JobQueue;
  openWorker(name: QueueName, settings: WorkerSettings): JobWorker;
  close(): Promise<void>;
}
export type QueueConnection = Opens &
  ({ readonly kind: "postgres"; readonly pool: pg.Pool } | { readonly kind: "redis" });

export interface ConnectQueueOptions {
  /** Redis or Valkey; absent = the Postgres behind `pool`. */
  readonly redisUrl?: string;
  readonly pool: pg.Pool;
  /** Bring BullMQ's schema up to date first (default true); safe to do from many processes at once. */
  readonly migrate?: boolean;
}

/** @throws whatever the server says when it can't be reached: a process without a queue must not start half. */
export async function connectQueue(options: ConnectQueueOptions): Promise<QueueConnection> {
  return options.redisUrl === undefined
    ? connectPostgres(options.pool, options.migrate ?? true)
    : connectRedis(options.redisUrl);
}

async function connectPostgres(pool: pg.Pool, migrate: boolean): Promise<QueueConnection> {
  if (migrate) {
    const client = await pool.connect();
    try {
      await runMigrations(client, queueSchema);
    } finally {
      client.release();
    }
  }
  const connection = new SharedPool(pool);
  const backend = withBackend(createPostgresBackend);
  return {
    kind: "postgres",
    pool,
    openQueue: (name, onError) => wrapQueue(new backend.Queue(name, { connection, ...queueOptions }), onError),
    openWorker: (name, settings) =>
      wrapWorker(new backend.Worker(name, processor(settings), { connection, ...workerOptions(settings) }), settings),
    close: () => connection.end(),
  };
}

async function connectRedis(url: string): Promise<QueueConnection> {
  const shared: RedisOptions = { retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1000) };
  // Whoever adds a job has already written the row, so it may fail at once: the sweep finds what was not enqueued.
  const adding = new Redis(url, { ...shared, lazyConnect: true, maxRetriesPerRequest: 1, commandTimeout: 5000 });
  const working = new Redis(url, { ...shared, lazyConnect: true, maxRetriesPerRequest: null });
  const closeBoth = async (): Promise<void> => {
    adding.disconnect();
    working.disconnect();
  };
  // Until a queue or worker listens too, a lost connection must not end the process.
  adding.on("error", ignoreUntilListened);
  working.on("error", ignoreUntilListened);
  try {
    await Promise.all([adding.connect(), working.connect()]);
  } catch (cause) {
    await closeBoth();
    throw new Error(`Redis can't be reached at ${redacted(url)}`, { cause });
  }
  const prefix = "rolldeck";
  return {
    kind: "redis",
    openQueue: (name, onError) => wrapQueue(new Queue(name, { connection: adding, prefix, ...queueOptions }), onError),
    openWorker: (name, settings) =>
      wrapWorker(
        new Worker(name, processor(settings), { connection: working, prefix, ...workerOptions(settings) }),
        settings,
      ),
    close: closeBoth,
  };
}

const ignoreUntilListened = (): void => {};

/** BullMQ keeps a log of its own events; nobody here reads it. */
const queueOptions = { streams: { events: { maxLen: 100 } } } as const;

function workerOptions(settings: WorkerSettings) {
  return {
    autorun: false,
    // Grows with what runs, see `startEachAtOnce`.
    concurrency: 1,
    lockDuration: settings.lockMs,
    stalledInterval: settings.stalledCheckMs,
    // A job is delivered again for as long as it stalls; the planner alone gives up on it.
    maxStalledCount: 1_000_000,
    // While the server is away, look again this often.
    runRetryDelay: 500,
    name: randomUUID(),
  };
}

/** BullMQ passes the signal only to processors that declare three parameters. */
function processor(settings: WorkerSettings) {
  return (job: { name: string; data: unknown }, _token: string | undefined, signal: AbortSignal | undefined) =>
    settings.process(job.name, job.data, signal ?? new AbortController().signal);
}

/**
 * BullMQ fetches as many jobs as a worker may run before it starts the first of them: of thousands, those fetched early would
 * have lost their locks before they begin. So the worker may always hold one job more than it is at, and each starts when it was
 * fetched. Relies on BullMQ's loop calling `processJob` before it looks again how many it may fetch; the conformance suite would
 * tell.
 */
function startEachAtOnce(worker: BullWorker, concurrency: number): void {
  const process = worker.processJob.bind(worker);
  let running = 0;
  const count = (change: 1 | -1): void => {
    running += change;
    worker.concurrency = Math.min(running + 1, concurrency);
  };
  worker.processJob = (job, token, fetchNext) => {
    count(1);
    return process(job, token, fetchNext).finally(() => count(-1));
  };
}

interface BullQueue {
  add(name: string, data: unknown, opts: JobsOptions): Promise<unknown>;
  addBulk(jobs: { name: string; data: unknown; opts: JobsOptions }[]): Promise<unknown>;
  close(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
}
interface BullWorker {
  concurrency: number;
  processJob: Worker["processJob"];
  run(): Promise<void>;
  pause(doNotWaitActive: boolean): Promise<void>;
  close(force: boolean): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

function wrapQueue(queue: BullQueue, onError: (error: Error) => void): JobQueue {
  queue.on("error", onError);
  return {
    add: async (job) => {
      await queue.add(job.name, job.data, job.opts);
    },
    addAll: async (jobs) => {
      await queue.addBulk(jobs.map((job) => ({ ...job })));
    },
    close: () => queue.close(),
  };
}

function wrapWorker(worker: BullWorker, { concurrency, onError }: WorkerSettings): JobWorker {
  startEachAtOnce(worker, concurrency);
  worker.on("error", onError);
  return {
    run: () => worker.run(),
    pause: () => worker.pause(true),
    close: (force) => worker.close(force),
  };
}

/** The address without user and password, for messages. */
function redacted(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return "the configured address";
  }
}
