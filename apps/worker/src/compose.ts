/**
 * The one place of the worker that constructs adapters. What it builds is started and stopped by `main`; tests build the same
 * and hand in other tasks.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { McpServers } from "@rolldeck/agent/io/mcp/servers";
import { readTemplate } from "@rolldeck/agent/io/named-templates";
import { resolveModel } from "@rolldeck/agent/io/resolve-model";
import { readEndpoints } from "@rolldeck/backends/endpoints/read-endpoints";
import { createJudge } from "@rolldeck/backends/openai/judge";
import { connectSamplingServer } from "@rolldeck/backends/openai/sampling-server";
import { connectTinker } from "@rolldeck/backends/tinker/connect";
import { readTrainers } from "@rolldeck/backends/trainers/read-trainers";
import { InputError } from "@rolldeck/contracts/errors";
import { leaseMs, leaseRenewMs } from "@rolldeck/contracts/jobs";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import { createPool, type Pool } from "@rolldeck/db/connect";
import { readRunWorkers } from "@rolldeck/db/fleet/run-workers";
import { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import { noteOnRun } from "@rolldeck/db/runs/note-on-run";
import { connectRayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { RunServers } from "@rolldeck/fleet/run-servers";
import { connectQueue } from "@rolldeck/queue/connection";
import { Producer } from "@rolldeck/queue/producer";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { tasks } from "@rolldeck/tasks/registry";
import { tools } from "@rolldeck/tools/registry";
import { pino } from "pino";
import { DatabaseClock } from "./database-clock.ts";
import type { WorkerEnv } from "./env.ts";
import { type FleetBackendOptions, FleetBackends } from "./fleet/fleet-backends.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { createMeasures } from "./measures.ts";
import { type BackendConnectors, OpenedBackends } from "./model-backends.ts";
import { ModelTokenizers } from "./model-tokenizers.ts";
import { readMcpServers } from "./read-mcp-servers.ts";
import { ReconcileRequests } from "./reconcile-requests.ts";
import { renewClaims } from "./renew-claims.ts";
import { RunWatch, readWatchedRuns } from "./run-watch.ts";
import { chatText } from "./sampling/chat-text.ts";
import { RunWaits } from "./sampling/run-waits.ts";
import { SandboxForecast } from "./sandboxes/forecast.ts";
import { RolloutSandboxes } from "./sandboxes/rollout-sandboxes.ts";
import { SandboxUpkeep } from "./sandboxes/upkeep.ts";
import { StoppedRuns } from "./stopped-runs.ts";
import { TrainerWatch } from "./trainers/trainer-watch.ts";
import type { WorkerClaim, WorkerContext } from "./worker-context.ts";
import { WorkerProcess } from "./worker-process.ts";

export interface WorkerParts {
  readonly tasks?: Readonly<Record<string, Task>>;
  readonly tools?: Readonly<Record<string, Tool>>;
  /** Opens all sandboxes, whatever runtime is asked for. */
  readonly runtime?: SandboxRuntime;
}

/** @throws when the database or the queue can't be reached: a worker without either must not start half. */
export async function compose(env: WorkerEnv, parts: WorkerParts = {}): Promise<WorkerProcess> {
  // Before anything is opened: a list that can't be read stops the start.
  const endpoints = await readEndpoints(env.endpointsFile, env.variable);
  const trainers = await readTrainers(env.trainersFile, env.variable);
  refuseSharedNames(endpoints, trainers);
  const mcpServers = await readMcpServers(env.mcpServersFile);
  const workerId = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const log = pino({ level: env.logLevel, base: { app: "worker", workerId } });
  const report = (error: unknown) => log.warn({ err: error }, "connection trouble");
  const pool = createPool(env.databaseUrl, { max: 20, applicationName: "rolldeck-worker", statementTimeoutMs: 60_000 });
  const connection = await connectQueue({ redisUrl: env.redisUrl ?? undefined, pool });
  const producer = new Producer(connection, report);
  const requests = new ReconcileRequests((runId) => producer.add("reconcile", { runId }), report);
  const stopping = new AbortController();
  const writer = new BatchWriter(pool);
  const tokenizers = new ModelTokenizers({
    resolve: (model) => resolveModel(model, env.modelRoots),
    template: (name) => readTemplate(name, env.templateRoots),
    load: loadTokenizer,
  });
  const onError = (error: unknown) => log.debug({ err: error }, "heartbeat failed");
  const connect: BackendConnectors = {
    tinker: (server) => connectTinker({ ...server, onError }),
    sampling: (endpoint) =>
      connectSamplingServer({
        endpoint,
        chatText,
        encoder: async (model) => {
          const tokenizer = await tokenizers.load({ name: model, chatTemplate: null, thinking: null });
          return (text) => tokenizer.encode(text);
        },
      }),
  };
  const fleet = env.fleetSecret === null ? null : fleetOf(pool, env.fleetSecret, onError);
  const engines = trainers.map((trainer) => trainer.engines);
  const backends = new OpenedBackends(env.gpuWorker, endpoints, connect, { engines, fleet });
  const mcp = new McpServers({
    servers: mcpServers,
    variable: env.variable,
    now: () => performance.now(),
    onTrouble: (server, trouble) => log.warn({ server, err: trouble }, "trouble with an MCP server"),
  });
  const judged = endpoints.find((endpoint) => endpoint.judge);
  const judge = judged === undefined ? null : createJudge({ endpoint: judged });
  const leases = new LeaseKeeper<WorkerClaim>({
    renew: (claims) => renewClaims(pool, workerId, claims),
    everyMs: leaseRenewMs,
    leaseMs,
    now: () => performance.now(),
    onError: report,
  });
  const stopped = new StoppedRuns(leases);
  const clock = new DatabaseClock(pool, () => Date.now());
  const runs = new RunWatch({
    read: (runIds) => readWatchedRuns(pool, runIds),
    watched: () => leases.runIds(),
    onRefresh: (watched) => stopped.see(watched),
    maxAgeMs: 500,
    now: () => performance.now(),
    onError: report,
  });
  const runtimes = new SandboxRuntimes({
    settings: env.sandbox,
    deployment: await readDeployment(pool),
    stateFolder: env.stateFolder,
    onTrouble: (trouble, error) => log.warn({ err: error }, trouble),
  });
  const sandboxParts = {
    pool,
    runtime: (name: SandboxRuntimeName) => parts.runtime ?? runtimes.get(name),
    now: () => performance.now(),
    onTrouble: (trouble: string, error: unknown) => log.warn({ err: error }, trouble),
  };
  const sandboxes = new RolloutSandboxes({ ...sandboxParts, imageRuntime: env.sandbox.imageRuntime });
  const openedTasks = new OpenedTasks({ tasks: parts.tasks ?? tasks, dataRoots: env.dataRoots });
  const measures = createMeasures();
  const context: WorkerContext = {
    workerId,
    pool,
    writer,
    leases,
    runs,
    tasks: parts.tasks ?? tasks,
    openedTasks,
    tools: parts.tools ?? tools,
    mcp,
    tokenizers,
    backends,
    sandboxes,
    sandboxUpkeep: new SandboxUpkeep({
      ...sandboxParts,
      used: () => (parts.runtime ? [parts.runtime] : runtimes.made()),
      onRoom: (runId) => requests.request(runId),
      forecast: new SandboxForecast({
        ...{ pool, tasks: openedTasks, now: sandboxParts.now, onTrouble: sandboxParts.onTrouble },
        runtimeOf: (task, config) => sandboxes.runtimeOf(task, config),
      }),
    }),
    trainerJobs: new TrainerWatch({
      pool,
      trainers: trainers.map((trainer) => ({ ...trainer, jobs: connectRayJobs(trainer.ray) })),
      wake: (runId) => requests.request(runId),
      onTrouble: (trouble, error) => log.warn({ err: error }, trouble),
    }),
    judge,
    prices: env.prices,
    waits: new RunWaits({
      count: (waitMs) => measures.samplingWaitSeconds.inc(waitMs / 1_000),
      note: (runId, message) => noteOnRun(pool, runId, [{ level: "warning", message }]),
      now: () => Date.now(),
      onError: report,
    }),
    reconciles: requests,
    enqueue: (jobs) => producer.addMany(jobs),
    requestReconcile: (runId) => requests.request(runId),
    pausing: (runId) => stopped.isPausing(runId),
    stopping: stopping.signal,
    databaseNow: () => clock.now(),
    measures,
    log,
  };
  return new WorkerProcess({
    context,
    env,
    connection,
    producer,
    writer,
    runs,
    clock,
    backends,
    judge,
    mcp,
    runtimes,
    stopping,
  });
}

function fleetOf(pool: Pool, secret: string, onError: (error: unknown) => void): FleetBackends {
  const now = () => performance.now();
  const servers = new RunServers({ secret, read: (runId) => readRunWorkers(pool, runId), now });
  // A sample that fails goes to another replica, or waits where everyone does, and finds the worker where it is then.
  const connect: FleetBackendOptions["connect"] = (server) =>
    connectTinker({ ...server, dialect: "rolldeck", samplingOutageMs: 0, onError });
  return new FleetBackends({ servers, connect, now });
}

/** Runs know a server by its name alone. @throws InputError */
function refuseSharedNames(endpoints: readonly { name: string }[], trainers: readonly { name: string }[]): void {
  const shared = trainers.find(({ name }) => endpoints.some((endpoint) => endpoint.name === name));
  if (shared === undefined) return;
  const message = `${shared.name} is the name of an endpoint as well: give one of them another`;
  throw new InputError([{ path: "ROLLDECK_TRAINERS", message }]);
}
