/**
 * Thousands of short rollouts while everything is killed and restarted: three workers, the api, the model server (scripted, and the real
 * one of Python), Postgres and Redis; workers freeze past their leases, jobs come late and twice, and people cancel and pause. One part
 * after the other: `pipeline` and `async` with maxStaleness 2, each with either queue; half of them in
 * sandboxes of this machine.
 * → {"rollouts","kills","lost","double","gaps","leaked"}
 *
 * `rollouts`: settled. `lost`: neither settled nor trained by the step that accepted it. `double`: settled, sampled or trained twice.
 * `gaps`: holes in `seq`, for who reads the rows and for who follows them over REST, and every other broken rule of the log (pools above
 * their size at any moment, staler than allowed, …; each is said on stderr). `leaked`: leases and rows of sandboxes that outlive their
 * rollout, and sandboxes left 30 s after the longest lease.
 * Flags: --rollouts <n> (2000), --kills <n> (56), --minutes <n> of strikes per part at most (10), --seed <n> (1), --only <part>, which
 * then gets all rollouts and kills.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { z } from "zod";
import { sandboxLeaseMs } from "../../apps/worker/src/sandboxes/sandbox-spec.ts";
import { partNames, parts } from "./chaos/parts.ts";
import { type PartResult, runPart } from "./chaos/run-part.ts";
import { runningSandboxes } from "./chaos/running-sandboxes.ts";

type Progress = (line: string) => void;

const afterLeaseMs = 30_000;
const allKills = Object.values(parts).reduce((sum, { kills }) => sum + kills, 0);
const Flags = z.object({
  rollouts: z.coerce.number().int().min(1).default(2_000),
  kills: z.coerce.number().int().min(1).default(56),
  minutes: z.coerce.number().positive().default(10),
  seed: z.coerce.number().int().default(1),
  only: z.enum(partNames).optional(),
});

export async function run(args: string[], progress: Progress): Promise<object> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: { rollouts: text, kills: text, minutes: text, seed: text, only: text },
  });
  const flags = Flags.parse(values);
  const folder = await mkdtemp(path.join(tmpdir(), "rolldeck-chaos-"));
  // The account that runs Postgres must be able to enter it.
  await chmod(folder, 0o711);
  try {
    const results: PartResult[] = [];
    for (const name of partNames.filter((each) => flags.only === undefined || each === flags.only)) {
      const { share, kills } = parts[name];
      const alone = flags.only !== undefined;
      const wanted = {
        rollouts: alone ? flags.rollouts : Math.ceil(flags.rollouts * share),
        kills: alone ? flags.kills : Math.ceil((flags.kills * kills) / allKills),
      };
      const say: Progress = (line) => progress(`${name}: ${line}`);
      results.push(
        await runPart(
          name,
          { ...wanted, seed: flags.seed, minutes: flags.minutes, folder: path.join(folder, name) },
          say,
        ),
      );
    }
    const left = await sandboxesLeft(results, progress);
    const sum = (of: (result: PartResult) => number): number => results.reduce((all, each) => all + of(each), 0);
    return {
      rollouts: sum(({ rollouts }) => rollouts),
      kills: sum(({ kills }) => kills),
      lost: sum(({ lost }) => lost),
      double: sum(({ double }) => double),
      gaps: sum(({ gaps }) => gaps),
      leaked: sum(({ leaked }) => leaked) + left,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** All workers are gone by now: what still runs has nobody who would close it, and must end by itself. */
async function sandboxesLeft(results: readonly PartResult[], progress: Progress): Promise<number> {
  const count = async (): Promise<number> => {
    const counts = await Promise.all(results.map(({ sandboxes }) => runningSandboxes(sandboxes)));
    return counts.reduce((sum, each) => sum + each, 0);
  };
  for (const end = performance.now() + sandboxLeaseMs + afterLeaseMs; performance.now() < end; await sleep(2_000)) {
    if ((await count()) === 0) return 0;
    progress(`${await count()} sandboxes run until their lease is past`);
    await sleep(8_000);
  }
  return count();
}
