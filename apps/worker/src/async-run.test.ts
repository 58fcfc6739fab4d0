/** Groups that start while older ones train, on the live engine: real rows, queue and worker, and a trainer that takes its time. */

import { decodeTokens } from "@rolldeck/backends/testing/scripted/vocabulary";
import type { Policy } from "@rolldeck/backends/testing/scripted-worker";
import { keyChainPolicy } from "@rolldeck/backends/testing/scripted-worker";
import { readTrajectory } from "@rolldeck/db/hot/read-trajectory";
import { afterEach, describe, expect, test, vi } from "vitest";
import { checkAsync } from "../testing/check-async.ts";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { sleep } from "./wait-for.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let rig: Rig | null = null;
afterEach(async () => {
  await rig?.close();
  rig = null;
});

const steps = 6;
const batch = { groupsPerStep: 3, groupSize: 4 };

/**
 * Half of the rollouts follow the chain. The others look up keys that tell the version that samples, and answer wrong. Two kinds
 * of them wait, without a clock: the very first until no update may take it any more, and the first of each version until the
 * next one serves. A rollout is known again by the key that it asked for first.
 */
function patientPolicy(maxStaleness: number): Policy {
  const chain = keyChainPolicy();
  const begun = new Set<number>();
  let newest = 0;
  const waitFor = (version: number): number => {
    const first = begun.size === 0;
    if (begun.has(version)) return 0;
    begun.add(version);
    if (first) return maxStaleness + 1;
    // Only while groups are still drawn, for it is their first calls that show a new version.
    return version > 0 && version + maxStaleness + 2 <= steps ? version + 1 : 0;
  };
  return async ({ prompt, seed, version }) => {
    newest = Math.max(newest, version);
    const turn = prompt.split("<|tool|>").length - 1;
    const told = Told.exec(prompt)?.[1];
    if (told === undefined && (turn > 0 || seed % 2 === 0)) return chain({ prompt, seed, version });
    const until = told === undefined ? waitFor(version) : Number(told);
    while (turn > 0 && newest < until) await sleep(5);
    return turn < 3 ? `[get(k="${until}.${version}.${turn}")]` : '[finish(answer="?")]';
  };
}

/** Version that is waited for, the one that samples, and the turn. */
const Told = /get\(k="(\d)\.(\d)\.(\d)"/;

describe.each([1, 2])("staleness %i", (maxStaleness) => {
  test("steps train whole batches while the next ones are sampled, none from versions too old", async () => {
    rig = await startRig({ policy: patientPolicy(maxStaleness), delayMs: 5, updateMs: () => 300 });
    const { launch, untilStatus, value, database } = rig;
    const runId = await launch(
      smokeConfig({
        evaluation: { samples: 0 },
        agent: { maxContextTokens: 1024 },
        dispatcher: { name: "async", maxStaleness, bounds: { init: 64, run: 64, evaluate: 64 } },
        algorithm: batch,
        budget: { steps },
      }),
    );
    expect(await untilStatus(runId, "completed", "failed")).toBe("completed");
    expect(await checkAsync(database.pool, runId)).toEqual([]);

    expect(await value(beside("p.stage = 'init' and p.started_at < u.ended_at"), [runId])).toBeGreaterThan(0);
    const sampledMeanwhile = "p.stage = 'run' and p.started_at < u.ended_at and p.ended_at > u.update_started_at";
    expect(await value(beside(sampledMeanwhile), [runId])).toBeGreaterThan(0);
    expect(await value(spanning, [runId])).toBeGreaterThan(0);
    // With room for one more update the ones that span the one before it are trained too.
    if (maxStaleness > 1) expect(await value(`${spanning} where is_trained`, [runId])).toBeGreaterThan(0);
    expect(await versionsToldByTurns(rig, runId)).toBeGreaterThan(steps);

    // Too old, so set aside; the same instance again in its place, and that one trained.
    const again = `select count(*)::int from groups g join groups n on n.replaces = g.id join steps s on s.id = n.step_id
      where g.run_id = $1 and g.set_aside = 'stale' and n.instance_id = g.instance_id and n.set_aside is null and s.state = 'done'`;
    expect(await value(again, [runId])).toBeGreaterThan(0);
  });
});

/** Stages beside the update of a step before their own. */
const beside = (how: string): string =>
  `select count(*)::int from stage_spans p join rollouts r on r.id = p.rollout_id join steps own on own.id = r.step_id
     join steps u on u.run_id = p.run_id and u.step < own.step where p.run_id = $1 and ${how}`;

/** Rollouts whose turns are of several versions. */
const spanning = `select count(*)::int from (
  select bool_and(g.set_aside is null) as is_trained from rollouts r join groups g on g.id = r.group_id
    join transitions t on t.rollout_id = r.id and t.attempt = r.attempt
   where r.run_id = $1 group by r.id having count(distinct t.policy_version) > 1) x`;

/** Every turn's version is the one that the server sampled with. @returns how many turns told it */
async function versionsToldByTurns({ database }: Rig, runId: string): Promise<number> {
  const { rows } = await database.pool.query<{ id: string; attempt: number }>(
    "select id, attempt from rollouts where run_id = $1 and turns > 0",
    [runId],
  );
  let count = 0;
  for (const { id, attempt } of rows) {
    const { segments, turns } = await readTrajectory(database.pool, id, attempt);
    for (const { turn, sampledSegment, policyVersion } of turns) {
      const told = Told.exec(decodeTokens(segments[sampledSegment]?.tokens ?? []));
      if (told === null) continue;
      expect([Number(told[2]), Number(told[3])]).toEqual([policyVersion, turn]);
      count++;
    }
  }
  return count;
}
