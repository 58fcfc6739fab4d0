/**
 * Six runs that ask for a GPU worker of the fleet, launched through the API of a real `npm start`, with room for four on two real Docker
 * daemons (one by socket, one by TCP with TLS), while a worker's container, a daemon and the supervisor are killed with SIGKILL. A worker
 * is a container whose policy is scripted; all else is what production runs, and a run is over when its steps are trained.
 * → {"hosts","workers","placed","queued","restarted","orphans","doubleLeases","finished"}
 *
 * `placed`: placements, those after a restart too. `queued`: runs that had to wait, with a reason. `orphans`: containers of the fleet
 * that are left 30 s after the longest lease. `doubleLeases`: devices that were ever seen with two containers running. `finished`: runs
 * that completed with every step of theirs trained once.
 * Flags: --steps <n> of each run (12).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { leaseMs } from "@rolldeck/contracts/jobs";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { startTestHost, type TestHost } from "@rolldeck/fleet/testing/docker-hosts";
import { z } from "zod";
import { checkLog } from "../chaos/check-log.ts";
import type { StartedStack } from "../stack/started-stack.ts";
import { type FleetStackOptions, labelOf, startFleetStack } from "./fleet/fleet-stack.ts";
import { makeScriptedImages } from "./fleet/scripted-image.ts";
import { fleetContainers, watchDevices } from "./fleet/watch-devices.ts";

type Progress = (line: string) => void;

const runCount = 6;
const placesEach = 2;
const limitMs = 480_000;

export async function run(args: string[], progress: Progress): Promise<object> {
  const { values } = parseArgs({ args, options: { steps: { type: "string" } } });
  // Fewer are over on a quiet machine before all places are taken.
  const steps = z.coerce.number().int().min(1).default(40).parse(values.steps);
  const dataFolder = await mkdtemp(path.join(tmpdir(), "rolldeck-fleet-"));
  const database = await createTestDatabase();
  const hosts: TestHost[] = [];
  try {
    for (const [place, how] of (["socket", "tcp"] as const).entries()) {
      const host = await startTestHost(place + 6, how);
      if ("missing" in host) throw new Error(host.missing);
      hosts.push(host);
    }
    return await withFaults({ database, dataFolder, hosts, steps, progress });
  } finally {
    await Promise.all(hosts.map((host) => host.stop()));
    await database.drop();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

interface Scene extends FleetStackOptions {
  readonly hosts: readonly TestHost[];
  readonly steps: number;
}

async function withFaults(scene: Scene): Promise<object> {
  const { database, hosts, progress } = scene;
  const image = await makeScriptedImages(hosts);
  const ended = new AbortController();
  let stack = await startFleetStack(scene);
  try {
    const label = await labelOf(scene);
    const doubles = watchDevices(hosts, label, ended.signal);
    await register(stack, hosts, image);
    const runs = await launchAll(stack, scene);
    const queued = await waitForQueue(database, progress);
    await killWorker(hosts, label, progress);
    await until("it is started again", async () => (await counts(database)).restarts >= 1);
    await hosts[1]?.daemon.restart("SIGKILL");
    progress("a daemon was killed and started again, its containers with it");
    await until("its workers are started again", async () => (await counts(database)).restarts >= 2);
    process.kill(stack.pid, "SIGKILL");
    progress("the supervisor was killed; another one is started");
    stack = await startFleetStack(scene);
    await until("all runs are over", async () => (await counts(database)).over === runCount, limitMs).catch(
      (error: unknown) => progress(String(error)),
    );
    progress("waiting for what outlives them");
    await sleep(leaseMs + 30_000);
    const left = (await Promise.all(hosts.map((host) => fleetContainers(host, label, true)))).flat();
    const { placed, restarts } = await counts(database);
    return {
      ...{ hosts: hosts.length, workers: runCount, placed, queued, restarted: restarts },
      ...{ orphans: left.length, doubleLeases: doubles(), finished: await finished(scene, runs) },
    };
  } finally {
    ended.abort();
    await stack.stop();
  }
}

async function register({ rolldeck }: StartedStack, hosts: readonly TestHost[], image: string): Promise<void> {
  for (const [place, { endpoint }] of hosts.entries())
    await rolldeck.addFleetHost({ name: `host-${place}`, endpoint, cpuPlaces: placesEach, cpuMemoryMb: 512, image });
}

async function launchAll({ rolldeck }: StartedStack, { steps }: Scene): Promise<string[]> {
  const { config } = presets.smoke;
  const asked: RunConfigInput = {
    ...{ ...config, name: "fleet", tags: [...config.tags], taskSets: config.taskSets.map((set) => ({ ...set })) },
    backend: { fleet: { device: "cpu" } },
    // Room for the scripted policy's answers.
    agent: { ...config.agent, maxTurns: 8, sampling: { temperature: 1, maxTokensPerTurn: 32 } },
    algorithm: { ...config.algorithm, groupsPerStep: 2, groupSize: 2 },
    checkpoints: { every: 5, keep: 2 },
    budget: { steps },
  };
  const runs: string[] = [];
  for (let made = 0; made < runCount; made += 1) runs.push((await rolldeck.launchRun(asked)).runId);
  return runs;
}

const Counts = z.object({
  ready: z.int(),
  restarts: z.int(),
  placed: z.int(),
  waiting: z.int(),
  over: z.int(),
});

async function counts({ pool }: TestDatabase): Promise<z.infer<typeof Counts>> {
  const { rows } = await pool.query(
    `select count(*) filter (where state = 'ready')::int as ready, coalesce(sum(restarts), 0)::int as restarts,
       coalesce(sum(claim), 0)::int as placed, count(*) filter (where state = 'queued' and reason is not null)::int as waiting,
       (select count(*)::int from runs where ended_at is not null) as over
     from fleet_workers`,
  );
  return Counts.parse(rows[0]);
}

/** How many completed with nothing odd in their log and each step trained once. */
async function finished({ database: { pool }, steps, progress }: Scene, runs: readonly string[]): Promise<number> {
  let whole = 0;
  for (const runId of runs) {
    const odd = await checkLog(pool, runId);
    const { rows } = await pool.query<{ status: string; reason: string | null; done: number }>(
      `select status, reason, (select count(*)::int from steps s where s.run_id = r.id and s.purpose = 'train' and s.state = 'done') as done
       from runs r where id = $1`,
      [runId],
    );
    const [row] = rows;
    if (odd.length === 0 && row?.status === "completed" && row.done === steps) whole += 1;
    else progress(`run ${runId}: ${row?.status} (${row?.reason}), ${row?.done} steps, ${odd.join("; ")}`);
  }
  return whole;
}

/** @returns how many wait with a reason once all places are taken */
async function waitForQueue(database: TestDatabase, progress: Progress): Promise<number> {
  await until("all places are taken", async () => (await counts(database)).ready === 2 * placesEach);
  const { waiting } = await counts(database);
  progress(`${2 * placesEach} runs have workers, ${waiting} wait`);
  return waiting;
}

async function killWorker(hosts: readonly TestHost[], label: string, progress: Progress): Promise<void> {
  const [host] = hosts;
  const [container] = host ? await fleetContainers(host, label, false) : [];
  if (!host || !container) throw new Error("no worker runs on the first host");
  await host.docker.getContainer(container.Id).kill({ signal: "SIGKILL" });
  progress("a worker's container was killed");
}

async function until(what: string, holds: () => Promise<boolean>, withinMs = 120_000): Promise<void> {
  for (const end = performance.now() + withinMs; !(await holds()); await sleep(200))
    if (performance.now() > end) throw new Error(`${what}: not within ${withinMs / 1_000} s`);
}
