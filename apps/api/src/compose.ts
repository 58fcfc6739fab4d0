/** The only file that constructs adapters: database, queue, sockets, proxy. Everything else gets them as arguments. */
import { existsSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { StoredCheckpoints } from "@rolldeck/backends/gpu-worker/stored-checkpoints";
import { StoredSampler } from "@rolldeck/backends/gpu-worker/stored-sampler";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import { forgetOldKeys } from "@rolldeck/db/auth/idempotency-keys";
import { createPool } from "@rolldeck/db/connect";
import { readFileWorkers } from "@rolldeck/db/fleet/run-workers";
import { createPrisma, type PrismaClient } from "@rolldeck/db/prisma";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import { readEvents } from "@rolldeck/db/reads/read-events";
import { RunServers } from "@rolldeck/fleet/run-servers";
import { connectQueue, type QueueConnection } from "@rolldeck/queue/connection";
import { Producer } from "@rolldeck/queue/producer";
import { type AttachOptions, attachSockets, type Sockets } from "@rolldeck/realtime/server/attach-sockets";
import type { ShellLimits } from "@rolldeck/realtime/server/shell-host";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { tasks } from "@rolldeck/tasks/registry";
import type { Pool } from "pg";
import { createIdentify, type Identify } from "./auth/identify.ts";
import type { ApiSettings } from "./env.ts";
import { cookieName } from "./http/cookies.ts";
import { WebProxy } from "./http/proxy-web.ts";
import { TrustedOrigin } from "./http/trusted-origin.ts";
import { errorFacts, type Log } from "./log.ts";
import { ensureOwnerToken } from "./owner-token.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { createChatTokenizers } from "./serve/chat-tokenizers.ts";
import { ServedEndpoint } from "./serve/served-endpoint.ts";
import { createApiServer } from "./server.ts";
import { createCatalogue } from "./services/catalogue.ts";
import { CheckpointExports } from "./services/checkpoint-exports.ts";
import { createCheckpointServices } from "./services/checkpoint-services.ts";
import { createComparisonServices } from "./services/comparison-services.ts";
import { createDispatchServices } from "./services/dispatch-services.ts";
import { createDrivenServices } from "./services/driven-services.ts";
import { createFleetServices } from "./services/fleet-services.ts";
import { createLaunchCheck } from "./services/launch-check.ts";
import { createRolloutServices } from "./services/rollout-services.ts";
import { createRunServices } from "./services/run-services.ts";
import { sandboxFacts } from "./services/sandbox-issues.ts";
import { createSandboxServices } from "./services/sandbox-services.ts";
import { createScheduleServices } from "./services/schedule-services.ts";
import { createServingServices } from "./services/serving-services.ts";
import { createSimulationServices } from "./services/simulation-services.ts";
import { type Stored, StoredPlaces } from "./services/stored-places.ts";
import { createSystemServices, createTokenServices } from "./services/system-services.ts";
import { createTokenizers } from "./services/tokenizers.ts";
import type { Services } from "./services.ts";
import { createShells } from "./shell/create-shells.ts";
import { OverlapEstimates } from "./simulation/overlap-estimates.ts";
import { Predictor } from "./simulation/predictor.ts";
import type { SimulatedTaskFacts } from "./simulation/run-to-play.ts";
import { Simulations } from "./simulation/simulations.ts";

export interface Api {
  readonly server: Server;
  /** Starts to listen. @returns the address people open */
  listen(): Promise<{ readonly url: string; readonly port: number }>;
  /** Stops taking requests, ends sockets, closes connections. */
  close(): Promise<void>;
}

const forgetMs = 3_600_000;

/** What a test puts in the place of the real thing. */
export interface ApiParts {
  readonly runtime?: (name: SandboxRuntimeName) => Promise<SandboxRuntime>;
  readonly shellLimits?: Partial<ShellLimits>;
  /** Between two looks for runs to predict, milliseconds. */
  readonly predictEveryMs?: number;
}

export async function compose(settings: ApiSettings, log: Log, parts: ApiParts = {}): Promise<Api> {
  const onError = (error: unknown) => log.warn(errorFacts(error), "background error");
  const pool = createPool(settings.databaseUrl, { applicationName: "rolldeck-api", max: 16, onIdleError: onError });
  const prisma = createPrisma(pool);
  const queue = await connectQueue({ redisUrl: settings.redisUrl, pool });
  const producer = new Producer(queue, onError);
  const ownerToken = await ensureOwnerToken(settings.dataFolder);
  const trusted = new TrustedOrigin(settings.allowedHosts, settings.host);
  const bound = { port: settings.port };
  const identify = createIdentify({ db: pool, prisma, ownerToken, cookieName: () => cookieName(bound.port) });
  const runtimes = openRuntimes(settings, pool, log);
  const runtime = parts.runtime ?? runtimes.get;
  const shells = { host: createShells({ pool, identify, runtime, onError }), limits: parts.shellLimits };
  const sockets = openSockets({ settings, pool, trusted, identify, shells, onError });
  const proxy = new WebProxy(settings.webUrl);
  const simulations = new Simulations();
  const predictor = new Predictor({
    pool,
    factsOf: simulatedFacts,
    onError: (error, runId) => log.warn({ runId, ...errorFacts(error) }, "a run could not be predicted"),
    ...(parts.predictEveryMs === undefined ? {} : { everyMs: parts.predictEveryMs }),
  });
  const { places, samplers, closeWorkers } = openWorkers(settings, pool);
  const services = createServices({
    settings,
    pool,
    prisma,
    queue,
    producer,
    sockets,
    simulations,
    places,
    log,
  });
  const tokenizer = createChatTokenizers({ models: settings.modelRoots, templates: settings.templateRoots });
  const reachesWorkers = settings.gpuWorker !== null || settings.fleetSecret !== null;
  const served = reachesWorkers ? new ServedEndpoint({ pool, samplers, tokenizer }) : null;
  const metrics = new ProcessMetrics({ db: pool, sockets: () => sockets.count() });
  const port = () => bound.port;
  const server = createApiServer({ db: pool, services, identify, served, sockets, proxy, trusted, metrics, log, port });
  const forget = setInterval(() => void forgetOldKeys(pool).catch(onError), forgetMs);

  return {
    server,
    async listen() {
      bound.port = await listen(server, settings);
      predictor.start();
      return { port: bound.port, url: `http://${hostInUrl(settings.host)}:${bound.port}` };
    },
    async close() {
      clearInterval(forget);
      simulations.close();
      await predictor.close();
      await endServer(server, async () => {
        await sockets.close();
        proxy.close();
      });
      await runtimes.disconnect();
      await closeWorkers();
      await producer.close();
      await queue.close();
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

/** Workers whose files are read: this server's own, and those of runs on the fleet. */
function openWorkers({ gpuWorker, fleetSecret: secret }: ApiSettings, pool: Pool) {
  const stored = gpuWorker === null ? null : new StoredCheckpoints(gpuWorker);
  const sampler = gpuWorker === null ? null : new StoredSampler(gpuWorker);
  const read = (runId: string) => readFileWorkers(pool, runId);
  const servers = secret === null ? null : new RunServers({ secret, read, now: () => performance.now() });
  const shared = { pool, servers };
  const places = new StoredPlaces<Stored>({ ...shared, own: stored, connect: (at) => new StoredCheckpoints(at) });
  const samplers = new StoredPlaces<Pick<StoredSampler, "sample" | "stream">>({
    ...{ ...shared, own: sampler },
    connect: (at) => new StoredSampler(at),
  });
  const closeWorkers = async (): Promise<void> => {
    await Promise.all([stored?.close(), sampler?.close(), places.close(), samplers.close()]);
  };
  return { places, samplers, closeWorkers };
}

/** No new requests from now on; what is not answered soon is cut: a long poll must not hold the process. */
async function endServer(server: Server, closeOthers: () => Promise<void>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await closeOthers();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), 2_000);
  await closed;
  clearTimeout(cut);
}

function listen(server: Server, { host, port }: ApiSettings): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

const hostInUrl = (host: string): string => (host.includes(":") ? `[${host}]` : host);

function openSockets(parts: {
  readonly settings: ApiSettings;
  readonly pool: Pool;
  readonly trusted: TrustedOrigin;
  readonly identify: Identify;
  readonly shells: AttachOptions["shells"];
  readonly onError: (error: unknown) => void;
}): Sockets {
  const { pool, trusted, identify, shells, onError } = parts;
  return attachSockets({
    connectionString: parts.settings.databaseUrl,
    readEvents: (runId, after, limit) => readEvents(pool, runId, after, limit),
    allowRequest: (request) => trusted.hostAllowed(request) && trusted.originAllowed(request),
    authorise: async (request, token) => (await identify(request, token)) !== null,
    shells,
    onError,
  });
}

/** Made when the first shell is asked for: most servers never need them. */
function openRuntimes(settings: ApiSettings, pool: Pool, log: Log) {
  let made: Promise<SandboxRuntimes> | null = null;
  const make = async () =>
    new SandboxRuntimes({
      settings: settings.sandboxes,
      deployment: await readDeployment(pool),
      stateFolder: join(settings.dataFolder, "sandboxes"),
      onTrouble: (message, error) => log.warn(errorFacts(error), message),
    });
  return {
    get: async (name: SandboxRuntimeName): Promise<SandboxRuntime> => {
      made ??= make();
      // A database that was away once must not close the way for good.
      made.catch(() => {
        made = null;
      });
      return (await made).get(name);
    },
    disconnect: async () => {
      await (await made?.catch(() => null))?.disconnect();
    },
  };
}

function createServices(parts: {
  readonly settings: ApiSettings;
  readonly pool: Pool;
  readonly prisma: PrismaClient;
  readonly queue: QueueConnection;
  readonly producer: Producer;
  readonly sockets: Sockets;
  readonly simulations: Simulations;
  readonly places: StoredPlaces<Stored>;
  readonly log: Log;
}): Services {
  const { settings, pool, prisma, queue, producer, sockets, simulations, places, log } = parts;
  let queueOk = true;
  // The row is written before: a run that nobody could be told of is found by the sweep.
  const wake = async (runId: string) => {
    try {
      await producer.add("reconcile", { runId });
      queueOk = true;
    } catch (error) {
      queueOk = false;
      log.warn({ runId, ...errorFacts(error) }, "the queue could not be told of a run; the sweep will find it");
    }
  };
  const catalogue = createCatalogue({
    models: settings.modelRoots,
    templates: settings.templateRoots,
    mcpServers: settings.mcpServers,
    servers: settings.servers,
    prices: settings.prices,
  });
  const opened = new OpenedTasks({ tasks, dataRoots: settings.dataRoots });
  const tokenizer = createTokenizers(settings.modelRoots, (model, error) =>
    log.warn({ model, ...errorFacts(error) }, "tokens are shown as ids"),
  );
  const check = createLaunchCheck({
    places,
    pool,
    catalogue: catalogue.forCheck,
    tasks: opened,
    facts: { hasJudge: settings.hasJudge, sandboxes: sandboxFacts(settings.sandboxes, existsSync) },
  });
  return {
    runs: createRunServices({
      pool,
      wake,
      check,
      overlap: { estimates: new OverlapEstimates(), factsOf: simulatedFacts },
      waitForEvents: sockets.waitForEvents,
    }),
    comparisons: createComparisonServices({ pool, wake, check }),
    servings: createServingServices(pool, places),
    checkpoints: createCheckpointServices({ pool, wake, places, exports: new CheckpointExports(pool, places) }),
    rollouts: createRolloutServices({ db: pool, tokenizer }),
    sandboxes: createSandboxServices(pool),
    schedule: createScheduleServices({
      pool,
      taskFacts: (config) => opened.all(config),
      needsSandbox: (name) => (simulatedFacts(name)?.sandbox ?? "none") !== "none",
    }),
    simulations: createSimulationServices({ pool, simulations, factsOf: simulatedFacts }),
    dispatch: createDispatchServices({ pool, wake }),
    driven: createDrivenServices({ pool, wake, tasks: opened }),
    fleet: createFleetServices(pool, join(settings.dataFolder, "logs", "fleet")),
    tokens: createTokenServices(pool, prisma),
    catalogue: { get: catalogue.get },
    system: createSystemServices({
      db: pool,
      prisma,
      dataFolder: settings.dataFolder,
      queue: { kind: queue.kind, ok: () => queueOk },
    }),
  };
}

/** What is known of a task without its data set; null for one that this server does not have. */
function simulatedFacts(name: string): SimulatedTaskFacts | null {
  const [, task] = Object.entries(tasks).find(([known]) => known === name) ?? [];
  if (task === undefined) return null;
  return { sandbox: task.sandbox, gradeInPlace: "gradeInPlace" in task && task.gradeInPlace === true };
}
