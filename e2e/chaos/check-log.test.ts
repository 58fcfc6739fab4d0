/** Whoever judges chaos must be able to fail: a log without a fault is broken once for each rule, and each time that rule says so. */
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { createPool, type Pool } from "@rolldeck/db/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChaosStack, startChaosStack } from "./chaos-stack.ts";
import { checkLog, rules } from "./check-log.ts";
import { longConfig, longPolicy } from "./long-rollouts.ts";
import { brokenPools } from "./watch-pools.ts";

const config: RunConfigInput = {
  ...longConfig(2, 2),
  dispatcher: { name: "async", maxStaleness: 2, bounds: { init: 8, run: 8, evaluate: 8 } },
};
let stack: ChaosStack;
let runId: string;
/** One connection, so that what breaks a rule can be rolled back. */
let pool: Pool;
beforeAll(async () => {
  stack = await startChaosStack({ policy: longPolicy(2).policy });
  runId = await stack.launch(config);
  await stack.until("the run ends", async () => (await stack.value("select status from runs")) === "completed");
  await Promise.all(stack.workers.map((worker) => worker.kill()));
  pool = createPool(stack.databaseUrl, { max: 1, applicationName: "test" });
});
afterAll(async () => {
  await pool.end();
  await stack.close();
});

const first = "(select id from rollouts order by id limit 1)";
const lease = `insert into pool_leases (resource, rollout_id, run_id, attempt, until)
  select 'runSlot', id, run_id, attempt, 'run' from rollouts where id = ${first}`;
const counted = "update pools set used = used + 1 where resource = 'runSlot'";
const said = (type: string) => `insert into events (run_id, seq, type, rollout_id, body)
  select run_id, (select max(seq) + 1 from events), type, rollout_id, body from events where type = '${type}'`;
const trainedRow =
  "insert into training_rows (step_id, row, run_id, rollout_id, attempt, ranges, mask, advantage, scale, sent)";

/** What breaks a rule, by what the rule says. */
const breaks: Readonly<Record<string, string>> = {
  "seq counts from 1 without a gap": "delete from events where seq = 5",
  "next_seq is one past the newest event": "update runs set next_seq = next_seq + 1",
  "a rollout settles exactly once, and only if its row says so": `${said("rollout-status")}
    and body->>'state' = 'settled' order by seq limit 1`,
  "turns of an attempt count from 0 without a gap": `delete from transitions where rollout_id = ${first} and turn = 1`,
  "a turn has one event": `${said("turn-sampled")} order by seq limit 1`,
  "claims rise with the turns of an attempt": `update transitions set claim = 99 where rollout_id = ${first} and turn = 0`,
  "segments of an attempt count from 0 without a gap": `delete from segments where rollout_id = ${first} and "index" = 1`,
  "no two steps train one rollout": `${trainedRow}
    select (select id from steps where step = 3 - s.step), 1000, t.run_id, rollout_id, attempt, ranges, mask, advantage, scale, sent
    from training_rows t join steps s on s.id = t.step_id limit 1`,
  "a step trains its own rollouts, and of each the attempt that counts": `update rollouts set attempt = 7 where id = ${first}`,
  "no step trains the same tokens of a rollout twice": `${trainedRow}
    select step_id, 1000, run_id, rollout_id, attempt, ranges, mask, advantage, scale, sent from training_rows limit 1`,
  "a step that is done trained every rollout it accepted": `delete from training_rows where rollout_id = ${first}`,
  "no step trains staler rollouts than the run allows":
    "update metric_points set value = 3 where name = 'staleness/max'",
  "a rollout that is settled holds no lease": `${lease}; ${counted}`,
  "no sandbox outlives its rollout by more than its lease": `insert into sandboxes
      (id, run_id, rollout_id, attempt, purpose, claim, runtime, network, state, closed_at)
    select 'late', run_id, id, attempt, 'agent', 1, 'process', 'none', 'closed', now() + interval '5 minutes' from rollouts
    where id = ${first}`,
  "a step ends once": `${said("step-status")} and body->>'to' = 'done' order by seq limit 1`,
  "versions that serve never go back": `insert into events (run_id, seq, type, body)
    select run_id, (select max(seq) + 1 from events), type, jsonb_set(body, '{version}', '0') from events
    where type = 'version-serving' order by seq limit 1`,
  "a run that is over holds no lease and has no rollout under way": `update rollouts set state = 'waiting' where id = ${first}`,
  "infrastructure attempts are bounded": `update rollouts set infrastructure_failures = 4 where id = ${first}`,
};

/** What `sql` makes the checks say; nothing of it stays. */
async function brokenBy<T>(sql: string, check: () => Promise<T>): Promise<T> {
  await pool.query("begin");
  try {
    await pool.query(sql);
    return await check();
  } finally {
    await pool.query("rollback");
  }
}

test("a run that nothing happened to breaks no rule", async () => {
  expect(await checkLog(pool, runId)).toEqual([]);
  expect(await brokenPools(pool)).toEqual([]);
});

test("every rule has something here that breaks it", () => {
  expect(Object.keys(breaks).sort()).toEqual(rules.map(({ says }) => says).sort());
});

test.each(Object.entries(breaks))("%s", async (says, sql) => {
  const found = await brokenBy(sql, () => checkLog(pool, runId));
  expect(found.filter((rule) => rule.startsWith(`${says}:`))).toHaveLength(1);
});

test("more rollouts in a stage than its bound are found", async () => {
  const [found] = await brokenBy("update stage_spans set started_at = now(), ended_at = now() + interval '1 s'", () =>
    checkLog(pool, runId),
  );
  expect(found).toMatch(/rollouts were in stage \w+ at once, at most 8 may be/);
});

test("a pool that miscounts, passes its size or holds room for who is gone is found", async () => {
  const pools = () => brokenPools(pool);
  expect(await brokenBy(counted, () => checkLog(pool, runId))).toContain("pool runSlot counts 1 used, it has 0 leases");
  expect(await brokenBy(counted, pools)).toHaveLength(1);
  expect(await brokenBy(`${lease}; ${counted}`, pools)).toHaveLength(1);
  const tooMany = "alter table pools drop constraint pools_check; update pools set size = 0 where resource = 'runSlot'";
  expect(await brokenBy(`${tooMany}; ${lease}; ${counted}; update rollouts set state = 'active'`, pools)).toHaveLength(
    1,
  );
});
