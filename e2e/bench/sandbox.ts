/**
 * `npm run bench -- sandbox`: how fast sandboxes are, in real Docker and as processes, and whether any outlives its keeper.
 * → {"docker":{"at1":{"openMs","execMs","shellMs","closeMs"},"at8":…,"at32":…,"at64":…},"process":{…},"overheadPct",
 *    "rolloutsPerMin","leaked"}
 * `docker` and `process`: see sandbox/batches.ts; `process` is null where the machine allows no namespaces. overheadPct: the same
 * command through the port and through the daemon's client, in turns, median of the pairs' ratios. rolloutsPerMin: see
 * sandbox/rollouts.ts. leaked: sandboxes that are left 30 s after the longest lease when their processes were killed.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { startTestDocker } from "@rolldeck/sandbox/testing/start-test-docker";
import { type BatchTimes, measureBatches } from "./sandbox/batches.ts";
import {
  benchSpec,
  dockerRuntime,
  forever,
  newDeployment,
  processRuntime,
  rounded,
} from "./sandbox/bench-sandboxes.ts";
import { countLeaks } from "./sandbox/leaks.ts";
import { measureOverhead } from "./sandbox/overhead.ts";
import { measureRollouts } from "./sandbox/rollouts.ts";

const sizes = [
  { atOnce: 1, batches: 15 },
  { atOnce: 8, batches: 5 },
  { atOnce: 32, batches: 3 },
  { atOnce: 64, batches: 3 },
];
const rolloutsAtOnce = [8, 16, 32];
const pairs = 200;

type Progress = (line: string) => void;

export interface SandboxResult {
  readonly docker: Readonly<Record<string, BatchTimes>>;
  readonly process: Readonly<Record<string, BatchTimes>> | null;
  readonly overheadPct: number;
  readonly rolloutsPerMin: number;
  readonly leaked: number;
}

/** Flags: `--quick`, a tenth of the work, for trying it out. */
export async function run(args: string[], progress: Progress): Promise<SandboxResult> {
  const quick = args.includes("--quick");
  const docker = await startTestDocker(progress);
  if ("missing" in docker) throw new Error(docker.missing);
  const deployment = newDeployment();
  const stateFolder = await mkdtemp(join(tmpdir(), "rolldeck-bench-"));
  const containers = dockerRuntime(deployment, docker.socket);
  const processes = processRuntime(deployment, stateFolder);
  try {
    const ailment = await processes.ailment(forever);
    if (ailment !== null) progress(`no process sandboxes here: ${ailment}`);
    const result = {
      docker: await batches(containers, true, quick, progress),
      process: ailment === null ? await batches(processes, false, quick, progress) : null,
      overheadPct: rounded(await overhead(containers, docker.socket, quick ? pairs / 10 : pairs)),
      rolloutsPerMin: rounded(await measureRollouts(containers, quick ? [4] : rolloutsAtOnce, progress)),
    };
    progress(JSON.stringify(result));
    const scene = { deployment, socket: docker.socket, stateFolder, processes: ailment === null ? processes : null };
    return { ...result, leaked: await countLeaks(scene, progress) };
  } finally {
    for (const runtime of [containers, processes]) {
      for (const { id } of await runtime.list(forever)) await runtime.close(id, forever);
      await runtime.disconnect();
    }
    await docker.stop();
    await rm(stateFolder, { recursive: true, force: true });
  }
}

async function batches(
  runtime: SandboxRuntime,
  image: boolean,
  quick: boolean,
  progress: Progress,
): Promise<Record<string, BatchTimes>> {
  const results: Record<string, BatchTimes> = {};
  for (const { atOnce, batches: all } of quick ? sizes.slice(0, 2) : sizes) {
    const times = await measureBatches(runtime, image, { atOnce, batches: quick ? 1 : all });
    results[`at${atOnce}`] = times;
    progress(`${runtime.name}, ${atOnce} at once: ${JSON.stringify(times)}`);
  }
  return results;
}

async function overhead(runtime: SandboxRuntime, socket: string, count: number): Promise<number> {
  const spec = benchSpec(true);
  try {
    return await measureOverhead(await runtime.open(spec, forever), socket, count);
  } finally {
    await runtime.close(spec.id, forever);
  }
}
