/**
 * How long a transition takes from its commit to a connected client, with 64 rollouts running: embedded Postgres, api and
 * worker in processes of their own, the scripted GPU worker, and a client that follows the run as a page does. An event's `at`
 * is the database's clock when its statement began, so the time of the commit itself counts too: the numbers are upper bounds.
 * Flags: --rollouts <n> (64), --events <n> (4000), --delay <ms> of one model call (150).
 */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startScriptedWorker } from "@rolldeck/backends/testing/scripted-worker";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import { presets } from "@rolldeck/contracts/presets";
import { startEmbeddedPostgres } from "@rolldeck/db/embedded-postgres";
import { migrate } from "@rolldeck/db/migrate";
import { freePort } from "@rolldeck/queue/testing/free-port";
import { LiveConnection } from "@rolldeck/realtime/client/live-connection";
import { LiveRun } from "@rolldeck/realtime/client/live-run";
import { startProcess } from "../stack/started-process.ts";
import { quantile } from "./quantile.ts";

interface Options {
  readonly rollouts: number;
  readonly events: number;
  readonly delayMs: number;
}
export interface LiveResult {
  readonly rollouts: number;
  readonly events: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}
type Progress = (line: string) => void;

const limitMs = 180_000;
/** Turns whose latency is not counted: processes that just started compile their code. */
const warmUpTurns = 500;

export async function run(args: string[], progress: Progress): Promise<LiveResult> {
  const { values } = parseArgs({
    args,
    options: {
      rollouts: { type: "string", default: "64" },
      events: { type: "string", default: "4000" },
      delay: { type: "string", default: "150" },
    },
  });
  const options = { rollouts: Number(values.rollouts), events: Number(values.events), delayMs: Number(values.delay) };
  if (!Object.values(options).every((value) => Number.isInteger(value) && value > 0))
    throw new Error("--rollouts, --events and --delay take whole numbers above 0");
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-live-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const { url, token } = await startStack(folder, options, stops, progress);
    return await measure({ url, token }, options, stops, progress);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function startStack(folder: string, options: Options, stops: (() => Promise<unknown>)[], progress: Progress) {
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, "postgres") });
  stops.push(() => postgres.stop());
  await migrate(postgres.url);
  const gpu = await startScriptedWorker({ delayMs: options.delayMs });
  stops.push(() => gpu.close());
  const port = await freePort();
  const env = {
    ROLLDECK_DATABASE_URL: postgres.url,
    ROLLDECK_DATA_DIR: folder,
    ROLLDECK_PORT: String(port),
    ROLLDECK_GPU_WORKER_URL: gpu.url,
    ROLLDECK_GPU_WORKER_KEY: gpu.apiKey,
    ROLLDECK_LOG_LEVEL: "warn",
  };
  for (const app of ["api", "worker"]) {
    const child = startProcess({
      script: `apps/${app}/src/main.ts`,
      env,
      onLine: (line) => progress(`${app}: ${line}`),
    });
    stops.push(() => child.stop());
  }
  const url = `http://127.0.0.1:${port}`;
  await untilHealthy(url);
  progress("api and worker are up");
  return { url, token: (await readFile(path.join(folder, "owner-token"), "utf8")).trim() };
}

async function measure(
  server: { readonly url: string; readonly token: string },
  options: Options,
  stops: (() => Promise<unknown>)[],
  progress: Progress,
): Promise<LiveResult> {
  const rolldeck = new Rolldeck(server);
  const { runId } = await rolldeck.launchRun(configFor(options));
  const connection = new LiveConnection(server);
  stops.push(async () => connection.close());
  const latenciesMs: number[] = [];
  let events = 0;
  let turns = 0;
  const live = new LiveRun(connection, {
    runId,
    after: 0,
    onEvents: (page) => {
      const now = performance.timeOrigin + performance.now();
      events += page.length;
      for (const event of page) {
        if (event.body.type !== "turn-sampled") continue;
        if (turns++ >= warmUpTurns) latenciesMs.push(now - Date.parse(event.at));
      }
    },
  });
  stops.push(async () => live.stop());
  const endsAt = Date.now() + limitMs;
  while (events < options.events || latenciesMs.length < options.events / 4) {
    if (Date.now() > endsAt) throw new Error(`only ${events} events came within ${limitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    progress(`${events} events, ${turns} turns, p99 so far ${quantile(latenciesMs, 0.99).toFixed(1)} ms`);
  }
  await rolldeck.actOnRun(runId, "stop", { reason: "measured" });
  return {
    rollouts: options.rollouts,
    events,
    p50Ms: round(quantile(latenciesMs, 0.5)),
    p99Ms: round(quantile(latenciesMs, 0.99)),
  };
}

/** As many rollouts in a step as asked, all of them in the run stage at once. */
function configFor({ rollouts }: Options) {
  const { config } = presets.quickstart;
  const groupSize = rollouts % 8 === 0 ? 8 : 1;
  return {
    ...config,
    name: "live bench",
    tags: ["bench"],
    model: { name: "quickstart", warmStart: null },
    dispatcher: { name: "pipeline", bounds: { init: rollouts, run: rollouts, evaluate: rollouts } },
    algorithm: {
      ...config.algorithm,
      groupsPerStep: rollouts / groupSize,
      groupSize,
      ...(groupSize === 1 ? { advantage: "reinforce++" } : {}),
    },
    evaluation: { samples: 0 },
    budget: { steps: 10_000 },
  };
}

async function untilHealthy(url: string): Promise<void> {
  const endsAt = Date.now() + 60_000;
  for (;;) {
    const healthy = await fetch(`${url}/healthz`).then(
      (response) => response.ok,
      () => false,
    );
    if (healthy) return;
    if (Date.now() > endsAt) throw new Error("the api did not come up within 60 s");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const round = (value: number): number => Math.round(value * 10) / 10;
