/**
 * The supervisor behind `npm start`: database, API, pages, worker and GPU worker in one terminal. Order: the URL is printed as
 * soon as the API listens; pages and Python environment are made beside it. Ctrl-C stops everything, the servers before what
 * they need; a second start continues where it stopped.
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import { createSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import { createPool } from "@rolldeck/db/connect";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { migrate } from "@rolldeck/db/migrate";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import type { Pool } from "pg";
import { errorText } from "../commands/error-text.ts";
import type { Child } from "./child.ts";
import { say } from "./console-lines.ts";
import { chooseDataFolder } from "./data-folder.ts";
import { launchDemo } from "./demo.ts";
import { superviseFleet } from "./fleet.ts";
import { freePort } from "./free-port.ts";
import { gpuWorkerUrl, startGpuWorker, stringEnv } from "./gpu-worker.ts";
import { localWorkers } from "./local-workers.ts";
import type { Part, StartOptions } from "./options.ts";
import { fleetSecret, gpuWorkerKey } from "./secrets.ts";
import { readServerFile, removeServerFile, writeServerFile } from "./server-file.ts";
import { nodeChild, webChild } from "./servers.ts";
import { waitForHealth } from "./wait-for-health.ts";
import { ensureWebBuilt } from "./web-build.ts";

/** What stops together, in this order: a worker hands its rollouts back while model server and database still answer. */
const stopOrder = ["servers", "gpu-workers", "connections", "postgres"] as const;

interface Closer {
  readonly name: string;
  readonly group: (typeof stopOrder)[number];
  close(): Promise<void>;
}

/** Runs until a signal; resolves after everything has stopped. */
export async function start(options: StartOptions, root: string): Promise<void> {
  const closers: Closer[] = [];
  const abort = new AbortController();
  const stopped = onSignals(closers, abort);
  try {
    await bringUp(options, root, closers, abort.signal);
  } catch (error) {
    if (!abort.signal.aborted) {
      process.exitCode = 1;
      say("rolldeck", errorText(error));
      abort.abort();
      await closeAll(closers);
      return;
    }
  }
  await stopped;
  // What was still coming up when the signal came.
  await closeAll(closers);
}

async function closeAll(closers: Closer[]): Promise<void> {
  const all = closers.splice(0);
  const stop = ({ name, close }: Closer): Promise<void> =>
    close().catch((error: Error) => say(name, `did not stop cleanly: ${error.message}`));
  for (const group of stopOrder) await Promise.all(all.filter((closer) => closer.group === group).map(stop));
}

/** One Ctrl-C may come twice: from the terminal, and from npm, which passes it on. Signals closer than this are one, ms. */
const sameSignalMs = 1_000;

/** First signal: stop in order. Second: end at once. */
function onSignals(closers: Closer[], abort: AbortController): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | null = null;
    const onSignal = (): void => {
      if (firstAt !== null) {
        if (performance.now() - firstAt > sameSignalMs) process.exit(130);
        return;
      }
      firstAt = performance.now();
      say("rolldeck", "stopping (again to force)");
      abort.abort();
      void closeAll(closers).then(resolve);
    };
    // SIGHUP: the terminal was closed. What is said from then on reaches nobody, which is no reason to die half-way.
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, onSignal);
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  });
}

async function bringUp(options: StartOptions, root: string, closers: Closer[], signal: AbortSignal): Promise<void> {
  const data = chooseDataFolder({
    asked: options.dataDir,
    root,
    xdgDataHome: process.env.XDG_DATA_HOME,
    needsOthers: options.databaseUrl === undefined && process.getuid?.() === 0,
  });
  if (data.notice !== null) say("data", data.notice);
  const running = readServerFile(data.path);
  if (running !== null)
    throw new Error(
      `already running at ${running.url} (process ${running.pid}); stop it first, or choose another --data-dir`,
    );
  const logFolder = path.join(data.path, "logs");
  mkdirSync(logFolder, { recursive: true, mode: 0o700 });

  const secret = fleetSecret(data.path, process.env.ROLLDECK_FLEET_SECRET);

  const { url: databaseUrl, pool } = await openDatabase(options, data.path, closers);
  const port = await freePort(options.host, options.port);
  if (port !== options.port && options.port !== 0) say("api", `port ${options.port} is busy, using ${port}`);
  const webPort = await freePort("127.0.0.1", port + 1);
  const gpuPort = await freePort("127.0.0.1", webPort + 1);
  const modelRoots = process.env.ROLLDECK_MODEL_ROOTS ?? path.join(root, "infra/models");
  const env = serverEnv({
    options,
    root,
    dataFolder: data.path,
    databaseUrl,
    port,
    webPort,
    gpuPort,
    modelRoots,
    secret,
  });
  const publicUrl = addressOf(options.host, port);

  const supervise = (name: string, child: Child, graceMs: number): void => {
    closers.push({ name, group: "servers", close: () => child.stop(graceMs) });
    child.start();
  };
  const runs = (part: Part): boolean => options.only.includes(part);
  const node = { root, logFolder, stopping: signal };
  if (runs("worker")) supervise("worker", nodeChild({ name: "worker", env, ...node }), 11_000);
  if (runs("fleet")) {
    const fleet = superviseFleet({
      pool,
      deployment: await readDeployment(pool),
      secret,
      logFolder: path.join(logFolder, "fleet"),
      local: localWorkers({ root, dataFolder: data.path, modelRoots, torch: options.torch, signal }),
    });
    closers.push({ name: "fleet", group: "gpu-workers", close: () => fleet.close() });
  }
  const gpu = runs("gpu-worker")
    ? superviseGpuWorker({ options, root, data: data.path, logFolder, modelRoots, gpuPort, pool, signal, closers })
    : null;
  if (runs("api")) {
    supervise("api", nodeChild({ name: "api", env, ...node }), 5_000);
    await waitForHealth(`http://127.0.0.1:${port}/healthz`, 60_000, signal);
    writeServerFile(data.path, publicUrl);
    closers.push({ name: "rolldeck", group: "servers", close: async () => removeServerFile(data.path) });
    await sayLink(pool, publicUrl);
    if (options.demo) await launchDemo(pool, publicUrl, data.path);
  }
  const web = runs("web")
    ? superviseWeb({ options, env: without(env, serverSecrets), webPort, supervise, ...node })
    : null;
  await Promise.all([gpu, web]);
}

/** What to type into a browser here: a server that listens everywhere is reached by the loopback name. */
function addressOf(host: string, port: number): string {
  if (host === "0.0.0.0" || host === "::") return `http://localhost:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Each process is told the secrets it uses, and no others. */
const serverSecrets = [
  "ROLLDECK_GPU_WORKER_KEY",
  "ROLLDECK_FLEET_SECRET",
  "ROLLDECK_DATABASE_URL",
  "ROLLDECK_REDIS_URL",
  "ROLLDECK_SANDBOX_TOKEN",
];
const without = (env: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

async function sayLink(pool: Pool, publicUrl: string): Promise<void> {
  const { code } = await createSignInCode(pool);
  say("rolldeck", `open ${publicUrl}/sign-in?code=${code}`);
  say("rolldeck", "the link works once, for 10 minutes; `npx rolldeck login-url` makes another");
}

async function openDatabase(
  options: StartOptions,
  dataFolder: string,
  closers: Closer[],
): Promise<{ url: string; pool: Pool }> {
  let url = options.databaseUrl;
  if (url === undefined) {
    const postgres = await startEmbeddedPostgres({ dataDir: path.join(dataFolder, "postgres") });
    closers.push({ name: "postgres", group: "postgres", close: () => postgres.stop() });
    url = postgres.url;
    say("postgres", `embedded, data in ${path.join(dataFolder, "postgres")}`);
  }
  const { applied } = await migrate(url);
  if (applied.length > 0) say("postgres", `migrations applied: ${applied.join(", ")}`);
  const pool = createPool(url, { applicationName: "rolldeck-start", max: 4 });
  closers.push({ name: "postgres", group: "connections", close: () => pool.end() });
  return { url, pool };
}

function serverEnv(parts: {
  options: StartOptions;
  root: string;
  dataFolder: string;
  databaseUrl: string;
  port: number;
  webPort: number;
  gpuPort: number;
  modelRoots: string;
  /** The fleet's. */
  secret: string;
}): Record<string, string> {
  const env: Record<string, string> = {
    ...stringEnv(process.env),
    NODE_ENV: "production",
    ROLLDECK_ROOT: parts.root,
    ROLLDECK_DATA_DIR: parts.dataFolder,
    ROLLDECK_DATABASE_URL: parts.databaseUrl,
    ROLLDECK_FLEET_SECRET: parts.secret,
    ROLLDECK_DATABASE_KIND: parts.options.databaseUrl === undefined ? "embedded" : "external",
    ROLLDECK_HOST: parts.options.host,
    ROLLDECK_PORT: String(parts.port),
    ROLLDECK_WEB_URL: `http://127.0.0.1:${parts.webPort}`,
    ROLLDECK_MODEL_ROOTS: parts.modelRoots,
    ROLLDECK_DATA_ROOTS: process.env.ROLLDECK_DATA_ROOTS ?? path.join(parts.dataFolder, "datasets"),
  };
  if (parts.options.redisUrl !== undefined) env.ROLLDECK_REDIS_URL = parts.options.redisUrl;
  // A GPU worker of the operator's own wins over the one that this process starts.
  if (process.env.ROLLDECK_GPU_WORKER_URL === undefined) {
    env.ROLLDECK_GPU_WORKER_URL = gpuWorkerUrl(parts.gpuPort);
    env.ROLLDECK_GPU_WORKER_KEY = gpuWorkerKey(parts.dataFolder);
  }
  return env;
}

async function superviseGpuWorker(parts: {
  options: StartOptions;
  root: string;
  data: string;
  logFolder: string;
  modelRoots: string;
  gpuPort: number;
  pool: Pool;
  signal: AbortSignal;
  closers: Closer[];
}): Promise<void> {
  if (process.env.ROLLDECK_GPU_WORKER_URL !== undefined) return;
  const child = await startGpuWorker({
    root: parts.root,
    dataFolder: parts.data,
    logFolder: parts.logFolder,
    modelRoots: parts.modelRoots,
    port: parts.gpuPort,
    key: gpuWorkerKey(parts.data),
    torch: parts.options.torch,
    pool: parts.pool,
    signal: parts.signal,
  });
  if (child === null) return;
  parts.closers.push({ name: "gpu-worker", group: "gpu-workers", close: () => child.stop(10_000) });
  say("gpu-worker", "started");
}

async function superviseWeb(parts: {
  options: StartOptions;
  root: string;
  env: Record<string, string>;
  webPort: number;
  logFolder: string;
  stopping: AbortSignal;
  supervise: (name: string, child: Child, graceMs: number) => void;
}): Promise<void> {
  if (!parts.options.dev) {
    say("web", "building the pages if their sources changed");
    const { built, tookMs } = await ensureWebBuilt(parts.root, () => undefined);
    if (built) say("web", `built in ${(tookMs / 1000).toFixed(0)} s`);
  }
  parts.supervise(
    "web",
    webChild({
      root: parts.root,
      env: parts.env,
      port: parts.webPort,
      dev: parts.options.dev,
      logFolder: parts.logFolder,
      stopping: parts.stopping,
    }),
    5_000,
  );
  await waitForHealth(`http://127.0.0.1:${parts.webPort}/`, 120_000);
  say("web", "the pages are up");
}
