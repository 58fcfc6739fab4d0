/**
 * The running worker: consumers of the four queues, lease renewal, run watch, sweep. Stopping is graceful and bounded: no new
 * jobs, rollouts are handed back at their next turn boundary, and what still hangs after eight seconds is handed back as it is.
 */
import type { Server } from "node:http";
import type { McpServers } from "@rolldeck/agent/io/mcp/servers";
import type { OpenedJudge } from "@rolldeck/backends/openai/judge";
import type { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import { removeWorker } from "@rolldeck/db/workers";
import type { QueueConnection } from "@rolldeck/queue/connection";
import { Consumer, type ConsumerOptions } from "@rolldeck/queue/consumer";
import type { Producer } from "@rolldeck/queue/producer";
import type { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import type { DatabaseClock } from "./database-clock.ts";
import type { WorkerEnv } from "./env.ts";
import { startHealthServer } from "./health-server.ts";
import { evaluateStage } from "./jobs/evaluate-stage.ts";
import { initStage } from "./jobs/init-stage.ts";
import { prepare } from "./jobs/prepare.ts";
import { reconcile } from "./jobs/reconcile.ts";
import { runStage } from "./jobs/run-stage.ts";
import { update } from "./jobs/update.ts";
import type { OpenedBackends } from "./model-backends.ts";
import type { RunWatch } from "./run-watch.ts";
import { StageAbort } from "./stage-abort.ts";
import { Sweep } from "./sweep.ts";
import { sleep } from "./wait-for.ts";
import type { WorkerContext } from "./worker-context.ts";

export interface WorkerProcessParts {
  readonly context: WorkerContext;
  readonly env: WorkerEnv;
  readonly connection: QueueConnection;
  readonly producer: Producer;
  readonly writer: BatchWriter;
  readonly runs: RunWatch;
  readonly clock: DatabaseClock;
  readonly backends: OpenedBackends;
  readonly judge: OpenedJudge | null;
  readonly mcp: McpServers;
  readonly runtimes: Pick<SandboxRuntimes, "disconnect">;
  readonly stopping: AbortController;
}

/** After this, what has not reached a turn boundary is cut off; with the rest it stays under ten seconds. */
const graceMs = 7_000;
const afterCutMs = 1_000;
const clockEveryMs = 30_000;
/**
 * A stage whose worker is lost is delivered again when its row's lease is past, by the planner: the queue's own locks are only for
 * what a job leaves in the queue. They are long, because thousands of jobs that run are all written with each check and renewal.
 */
const stageLocks = { lockMs: 120_000, stalledCheckMs: 60_000 };

export class WorkerProcess {
  readonly #parts: WorkerProcessParts;
  readonly #consumers: readonly Consumer[];
  readonly #sweep: Sweep;
  #health: Server | null = null;
  #clockTimer: NodeJS.Timeout | null = null;
  #stopped: Promise<void> | null = null;

  constructor(parts: WorkerProcessParts) {
    this.#parts = parts;
    this.#consumers = queueOptions(parts).map((options) => new Consumer(parts.connection, options));
    this.#sweep = new Sweep(parts.context);
  }

  get context(): WorkerContext {
    return this.#parts.context;
  }

  /** Port of /healthz; null when there is none. */
  get healthPort(): number | null {
    const address = this.#health?.address();
    return typeof address === "object" && address !== null ? address.port : null;
  }

  async start(): Promise<void> {
    const { context, env, clock, runs } = this.#parts;
    await clock.measure();
    this.#clockTimer = setInterval(() => {
      clock.measure().catch((error: unknown) => context.log.debug({ err: error }, "clock not measured"));
    }, clockEveryMs);
    context.leases.start();
    runs.start();
    for (const consumer of this.#consumers) consumer.start();
    this.#sweep.start();
    if (env.port !== null) {
      const { measures } = context;
      this.#health = await startHealthServer({ port: env.port, measures, ailment: () => this.#ailment() });
    }
    context.log.info({ concurrency: env.concurrency, queue: this.#parts.connection.kind }, "worker started");
  }

  /** Ends within ten seconds. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { context, stopping } = this.#parts;
    context.log.info("stopping");
    stopping.abort(new StageAbort("hand-back", "the worker is stopping"));
    const closing = Promise.all([
      this.#sweep.stop(),
      ...this.#consumers.map((consumer) => consumer.close(graceMs + afterCutMs)),
    ]);
    const cut = new AbortController();
    const cutting = sleep(graceMs, cut.signal).then(
      () => context.leases.abortAll(new StageAbort("hand-back", "the worker is stopping")),
      () => undefined,
    );
    await closing;
    cut.abort();
    await cutting;
    await this.#close();
    context.log.info("stopped");
  }

  async #close(): Promise<void> {
    const { context, runs, producer, writer, backends, judge, mcp, runtimes, connection } = this.#parts;
    if (this.#clockTimer !== null) clearInterval(this.#clockTimer);
    runs.stop();
    context.leases.stop();
    this.#health?.close();
    await writer.close();
    await removeWorker(context.pool, context.workerId).catch((error: unknown) => {
      context.log.debug({ err: error }, "the worker's row stays until it is swept");
    });
    await producer.close();
    await Promise.all([context.sandboxUpkeep.stop(), context.trainerJobs.stop()]);
    await Promise.all([backends.close(), judge?.close(), mcp.close(), runtimes.disconnect()]);
    await connection.close();
    await context.pool.end();
  }

  async #ailment(): Promise<string | null> {
    if (this.#parts.stopping.signal.aborted) return "stopping";
    const answered = await Promise.race([
      this.#parts.context.pool.query("select 1").then(
        () => true,
        () => false,
      ),
      sleep(2_000).then(() => false),
    ]);
    return answered ? null : "the database does not answer";
  }
}

function queueOptions({ context, env }: WorkerProcessParts): ConsumerOptions[] {
  const onError = (error: Error) => context.log.warn({ err: error }, "queue trouble");
  return [
    {
      queue: "control",
      concurrency: 8,
      handle: { reconcile: ({ runId }) => reconcile(context, runId, "queue") },
      onError,
    },
    {
      queue: "init-evaluate",
      // What may start is the planner's business: a second limit here would hold back what it let in.
      concurrency: env.concurrency,
      ...stageLocks,
      handle: { stage: (job) => (job.stage === "init" ? initStage(context, job) : evaluateStage(context, job)) },
      onError,
    },
    {
      queue: "run",
      concurrency: env.concurrency,
      ...stageLocks,
      handle: { "run-stage": (job) => runStage(context, job) },
      onError,
    },
    {
      queue: "train",
      concurrency: 8,
      handle: { prepare: (job) => prepare(context, job), update: (job) => update(context, job) },
      onError,
    },
  ];
}
