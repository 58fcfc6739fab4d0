import { reopenEvaluation } from "@rolldeck/db/hot/reopen-evaluation";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { keyChain } from "@rolldeck/tasks/key-chain/task";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";
import { weightsSource } from "./training/weights-source.ts";

let rig: Rig;
let gate: (() => void) | null = null;
let graded = 0;
/** Verdicts wait for the gate after the first few, so that a run can be stopped half-way. */
const slowToGrade = {
  ...keyChain,
  verify: async (...asked: Parameters<typeof keyChain.verify>) => {
    graded += 1;
    if (graded > 5 && gate !== null) await new Promise(() => undefined);
    return keyChain.verify(...asked);
  },
};
beforeAll(async () => {
  rig = await startRig({ parts: { tasks: { "key-chain": slowToGrade } } });
});
afterAll(() => rig.close());

const evaluate = (change: object) =>
  smokeConfig({ kind: "evaluate", evaluation: { samples: 3, samplesPerInstance: 4, passAt: [1, 4] }, ...change });

test("an evaluation begins with another run's weights and takes n samples of each instance", async () => {
  const trained = await rig.launch(smokeConfig({ budget: { steps: 1 }, checkpoints: { every: 1 } }));
  expect(await rig.untilStatus(trained, "completed", "failed")).toBe("completed");
  const runId = await rig.launch(
    evaluate({ model: { name: "quickstart", warmStart: null, startFrom: { run: trained, version: 1 } } }),
  );
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const path = "select path from checkpoints where run_id = $1 order by version desc limit 1";
  expect(await rig.value(path, [runId])).toBe(await rig.value(path, [trained]));
  // Made again after the other run has gone on, it still has what it began with.
  await rig.database.pool.query(
    `insert into checkpoints (run_id, version, name, path, bytes, state)
     select run_id, 9, 'later', 'tinker://later/weights/9', 1, 'complete' from checkpoints where run_id = $1 limit 1`,
    [trained],
  );
  const newest = { run: trained, version: null };
  const claimed = { runId, config: { model: { name: "quickstart", warmStart: null, startFrom: newest } } };
  // @ts-expect-error: of the scene only this is looked at
  expect((await weightsSource({ context: { pool: rig.database.pool }, claimed }, 0))?.path).toBe(
    await rig.value(path, [runId]),
  );
  await rig.database.pool.query("delete from checkpoints where run_id = $1 and version = 9", [trained]);
  const shape = `select json_agg(n) from (select count(*)::int as n from rollouts where run_id = $1 and reward is not null group by group_id) g`;
  expect(await rig.value(shape, [runId])).toEqual([4, 4, 4]);
  const missing = await rig.launch(
    evaluate({ model: { name: "quickstart", warmStart: null, startFrom: { run: trained, version: 7 } } }),
  );
  await rig.untilStatus(missing, "failed");
  const reasons = JSON.stringify(await rig.events(missing));
  expect(reasons).toContain("no checkpoint of version 7");
});

test("one that was stopped half-way goes on with what it had not scored", async () => {
  graded = 0;
  gate = () => undefined;
  const runId = await rig.launch(evaluate({}));
  const scored = () =>
    rig.value("select count(*)::int from rollouts where run_id = $1 and reward is not null", [runId]);
  await rig.until("five are scored", async () => (await scored()) === 5);
  await moveRun(rig.database.pool, runId, "stopping", "enough for now");
  rig.workers[0]?.context.requestReconcile(runId);
  await rig.untilStatus(runId, "stopped");
  const rows =
    "select json_agg(json_build_object('id', id, 'at', settled_at, 'reward', reward) order by id) from rollouts where run_id = $1 and reward is not null";
  const before = await rig.value(rows, [runId]);
  const first = before as readonly { id: string }[];
  expect(first).toHaveLength(5);
  gate = null;
  expect(await reopenEvaluation(rig.database.pool, runId, "on")).toEqual({ rollouts: 7 });
  rig.workers[0]?.context.requestReconcile(runId);
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  expect(await scored()).toBe(12);
  const after = (await rig.value(rows, [runId])) as readonly { id: string }[];
  expect(after.filter(({ id }) => first.some((one) => one.id === id))).toEqual(first);
});

test("a graded rollout says why it ended and what the verifier found", async () => {
  const runId = await rig.launch(evaluate({ agent: { maxContextTokens: 16 } }));
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const said = await rig.value("select json_agg(distinct ending || ': ' || reason) from rollouts where run_id = $1", [
    runId,
  ]);
  for (const words of said as readonly string[])
    expect(words).toMatch(/^context_full: \d+ of 16 context tokens are used; no answer; it was \d$/);
});
