/**
 * Thousands of short rollouts in sandboxes of this machine while everything is killed and restarted: three workers, the model server,
 * Postgres and Redis; workers freeze past their leases and jobs come twice. → {"rollouts","kills","lost","double","gaps","leaked"}
 *
 * `rollouts`: settled. `lost`: neither settled nor still on their way when the run is told to stop, or trained by no step that should have.
 * `double`: settled twice, a turn twice, trained twice. `gaps`: holes in `seq`, and rules of the log broken otherwise. `leaked`: sandboxes
 * left 30 s after the longest lease. Flags: --rollouts <n> (2000), --kills <n> (50), --seed <n> (1)
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { readDeployment } from "@rolldeck/db/reads/live-sandboxes";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { ProcessRuntime } from "@rolldeck/sandbox/process/process-runtime";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { z } from "zod";
import { type ChaosStack, startChaosStack } from "../chaos/chaos-stack.ts";
import { checkLog } from "../chaos/check-log.ts";
import { type Fault, faults, hardFaults, seededRandom } from "../chaos/faults.ts";

type Progress = (line: string) => void;

const workers = 3;
const limitMs = 20 * 60_000;
/** Longest that a sandbox lives without a sign of its worker, and the wait after it. */
const sandboxLeaseMs = 180_000;
const afterLeaseMs = 30_000;
const Flags = z.object({
  rollouts: z.coerce.number().int().min(1).default(2_000),
  kills: z.coerce.number().int().min(1).default(50),
  seed: z.coerce.number().int().default(1),
});
type Flags = z.infer<typeof Flags>;

export async function run(args: string[], progress: Progress): Promise<object> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args, options: { rollouts: text, kills: text, seed: text } });
  const flags = Flags.parse(values);
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-chaos-"));
  const stack = await startChaosStack({
    policy,
    delayMs: 20,
    workers,
    queue: "redis",
    script: "boxed-worker",
    env: { ROLLDECK_DATA_DIR: folder },
  });
  try {
    const runId = await stack.launch(config);
    await stack.until(
      "the first rollout is settled",
      async () =>
        Number(await stack.value("select count(*) from rollouts where run_id = $1 and state = 'settled'", [runId])) > 0,
    );
    const kills = await strikeUntil(stack, runId, flags, progress);
    await moveRun(stack.pool, runId, "stopping", null);
    await stack.until("the run is stopped", async () => (await statusOf(stack, runId)) === "stopped", 120_000);
    const counts = await count(stack, runId);
    progress(`stopped: ${JSON.stringify(counts)}; waiting for the longest lease`);
    for (const worker of stack.workers) await worker.kill();
    const broken = await checkLog(stack.pool, runId);
    return { rollouts: counts.settled, kills, ...faultsOf(broken, counts), leaked: await leaked(stack, folder) };
  } finally {
    await stack.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Three calls in a sandbox, then an answer; never the same call twice in a row. */
const policy = ({ prompt }: { readonly prompt: string }): string => {
  const done = prompt.split("<|tool|>").length - 1;
  return done < 3 ? `[bash(command="seq ${done + 1}")]` : '[finish(answer="1")]';
};

const config: RunConfigInput = {
  kind: "train",
  name: "chaos",
  model: { name: "quickstart" },
  taskSets: [{ name: "boxed" }],
  agent: { maxTurns: 10, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
  dispatcher: { name: "pipeline", bounds: { init: 32, run: 64, evaluate: 32 } },
  algorithm: { groupsPerStep: 16, groupSize: 8, filterZeroVariance: false },
  evaluation: { samples: 0 },
  checkpoints: { every: 4, keep: 3 },
  budget: { steps: 100_000 },
};

/** Strikes until both counts are reached. @returns processes that were killed */
async function strikeUntil(stack: ChaosStack, runId: string, flags: Flags, progress: Progress): Promise<number> {
  const random = seededRandom(flags.seed);
  const all: [string, Fault][] = Object.entries({ ...faults, ...hardFaults });
  let kills = 0;
  for (const end = performance.now() + limitMs; performance.now() < end; ) {
    const settled = await settledOf(stack, runId);
    if (settled >= flags.rollouts && kills >= flags.kills) return kills;
    const [name, fault] = all[Math.floor(random() * all.length)] ?? [];
    progress(`${settled} settled, ${kills} kills; ${name}`);
    await fault?.strike(stack, runId, random);
    kills += fault?.kills ?? 0;
    await sleep(random() * 3_000);
  }
  throw new Error(`not within ${limitMs / 60_000} min: ${flags.rollouts} rollouts and ${flags.kills} kills`);
}

async function statusOf(stack: ChaosStack, runId: string): Promise<unknown> {
  return stack.value("select status from runs where id = $1", [runId]);
}

async function settledOf(stack: ChaosStack, runId: string): Promise<number> {
  // Postgres may just be coming back.
  const { settled } = await stack.until("a count of rollouts", async () => ({
    settled: await stack.value("select count(*)::int from rollouts where run_id = $1 and state = 'settled'", [runId]),
  }));
  return z.int().parse(settled);
}

const Counts = z.object({ settled: z.int(), unsettled: z.int(), untrained: z.int(), twice: z.int() });
type Counts = z.infer<typeof Counts>;

async function count({ pool }: ChaosStack, runId: string): Promise<Counts> {
  const { rows } = await pool.query(
    `select count(*) filter (where r.state = 'settled')::int as settled,
       count(*) filter (where r.state <> 'settled')::int as unsettled,
       count(*) filter (where s.state = 'done' and r.outcome = 'completed' and t.steps is null)::int as untrained,
       count(*) filter (where t.steps > 1)::int as twice
     from rollouts r join steps s on s.id = r.step_id
     left join (select rollout_id, count(distinct step_id)::int as steps from training_rows where run_id = $1 group by 1) t
       on t.rollout_id = r.id
     where r.run_id = $1`,
    [runId],
  );
  return Counts.parse(rows[0]);
}

/** Broken rules of the log by what they mean; each is said on stderr whole. */
function faultsOf(broken: readonly string[], { unsettled, untrained, twice }: Counts) {
  for (const rule of broken) process.stderr.write(`broken: ${rule}\n`);
  const doubles = broken.filter((rule) => /exactly once|one event|two steps|ends once/.test(rule)).length;
  return { lost: unsettled + untrained, double: twice + doubles, gaps: broken.length - doubles };
}

async function leaked(stack: ChaosStack, folder: string): Promise<number> {
  await sleep(sandboxLeaseMs + afterLeaseMs);
  const runtime = new ProcessRuntime({
    settings: parseSandboxSettings({}, folder),
    deployment: await readDeployment(stack.pool),
    stateFolder: path.join(folder, "sandboxes"),
    onTrouble: () => undefined,
  });
  const left = await runtime.list();
  await runtime.disconnect();
  return left.filter(({ state }) => state === "running").length;
}
