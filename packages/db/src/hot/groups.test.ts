/** Groups drawn, added, set aside and left to the next step, on a real database, with two planners at once. */
import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody } from "@rolldeck/contracts/events";
import type { Action, NewLease, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { act, admitAll, createStep, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { poolLedger } from "../reconcile/pools.ts";
import { BatchWriter } from "./batch-writer.ts";
import { claimStage } from "./claim-stage.ts";

let database: TestDatabase;
let writer: BatchWriter;
beforeAll(async () => {
  database = await createTestDatabase({ max: 20 });
  writer = new BatchWriter(database.pool);
});
afterAll(async () => {
  await writer.close();
  await database.drop();
});

const leases: NewLease[] = [
  { resource: "initSlot", until: "init" },
  { resource: "sandbox", until: "run" },
];
const look = (runId: string) => snapshotOf(database.pool, runId);
async function bodies(runId: string): Promise<EventBody[]> {
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [runId]);
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, place) => place + 1));
  return rows.map((row) => EventBody.parse(row.body));
}
const stepIdOf = (snapshot: RunSnapshot, step: number): string =>
  snapshot.steps.find((row) => row.purpose === "train" && row.step === step)?.stepId ?? "";
const groupIdsOf = (snapshot: RunSnapshot, stepId: string): string[] =>
  (snapshot.groups ?? []).filter((group) => group.stepId === stepId).map(({ groupId }) => groupId);
const group = (instanceIndex: number, replaces: string | null = null) =>
  ({ taskSet: 0, split: "train", instanceIndex, replaces }) as const;
const more = (snapshot: RunSnapshot, ...groups: ReturnType<typeof group>[]): Action => ({
  do: "add-groups",
  stepId: stepIdOf(snapshot, 1),
  drawn: snapshot.groupsDrawn ?? -1,
  groups,
  groupSize: 2,
});
const aside = (
  snapshot: RunSnapshot,
  groupId: string,
  as: Extract<Action, { do: "set-aside" }>["as"] = "not-needed",
): Action => ({
  do: "set-aside",
  groupId,
  stepId: snapshot.groups?.find((row) => row.groupId === groupId)?.stepId ?? "",
  as,
  reason: "tests",
});
const settle = ({ rolloutId, attempt }: RolloutSnapshot): Action => ({
  do: "settle",
  rolloutId,
  attempt,
  outcome: "failed",
  ending: "infrastructure",
  reason: "tests",
});
async function claimFirst(runId: string, rolloutId: string) {
  const row = (await look(runId)).rollouts.find((rollout) => rollout.rolloutId === rolloutId);
  const claimed = row && (await claimStage(database.pool, { ...row, workerId: "w1" }));
  if (!claimed) throw new Error("not claimed");
  return { kind: "edge", runId, rolloutId, attempt: 1, claim: claimed.claim, stage: claimed.stage } as const;
}

describe("groups of a step", () => {
  test("are counted as drawn, and whoever draws from an older count draws nothing", async () => {
    const { runId } = await startPlannedRun(database.pool, { groups: 3, groupSize: 2 });
    const snapshot = await look(runId);
    expect(snapshot.groupsDrawn).toBe(3);
    expect(snapshot.groups).toHaveLength(3);
    expect(snapshot.groups?.[1]).toEqual({
      groupId: snapshot.rollouts[2]?.groupId,
      stepId: stepIdOf(snapshot, 1),
      instance: { taskSet: 0, split: "train", instanceIndex: 1 },
      setAside: null,
      replaces: null,
      expectedMs: null,
      held: false,
    });
    const plan = [more(snapshot, group(7), group(8))];
    const both = await Promise.all([
      act(database.pool, runId, plan, snapshot),
      act(database.pool, runId, plan, snapshot),
    ]);
    expect(both.map(({ applied }) => applied).sort()).toEqual([0, 1]);
    const after = await look(runId);
    expect(after.groupsDrawn).toBe(5);
    expect(after.groups?.map(({ instance }) => instance.instanceIndex)).toEqual([0, 1, 2, 7, 8]);
    expect(after.rollouts.filter(({ state, stage }) => state === "waiting" && stage === "init")).toHaveLength(10);
    expect((await bodies(runId)).at(-1)).toEqual({
      type: "groups-added",
      stepId: stepIdOf(after, 1),
      step: 1,
      groups: 2,
      rollouts: 4,
      replacing: 0,
    });
    // A planned step from the older count is refused, too: its instances would be drawn twice.
    expect(await act(database.pool, runId, [createStep(2, 1, 1)], snapshot)).toMatchObject({ applied: 0, refused: 1 });
    expect(await act(database.pool, runId, [createStep(2, 1, 1)], after)).toMatchObject({ applied: 1 });
  });

  test("an instance that is drawn again begins otherwise than before", async () => {
    const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 2 });
    const snapshot = await look(runId);
    const [old = ""] = groupIdsOf(snapshot, stepIdOf(snapshot, 1));
    await act(database.pool, runId, [aside(snapshot, old, "stale"), more(snapshot, group(0, old))], snapshot);
    const { rows } = await database.pool.query("select distinct seed from rollouts where run_id = $1", [runId]);
    expect(rows).toHaveLength(4);
    const after = await look(runId);
    expect(after.groups?.map(({ setAside, replaces }) => ({ setAside, replaces }))).toEqual([
      { setAside: "stale", replaces: null },
      { setAside: null, replaces: old },
    ]);
  });

  test("know how long rollouts of their instance took with the same model", async () => {
    const { runId } = await startPlannedRun(database.pool, { groups: 1, groupSize: 2 });
    await database.pool.query(
      `update rollouts set state = 'settled', outcome = 'completed', settled_at = now() where run_id = $1`,
      [runId],
    );
    // 2 s and 8 s in each stage: 4 s in the geometric mean.
    await database.pool.query(
      `insert into stage_spans (rollout_id, attempt, stage, run_id, ready_at, started_at, ended_at)
       select r.id, 1, s.stage, r.run_id, now(), now(), now() + case r.sample when 0 then 2 else 8 end * interval '1 second'
       from rollouts r, unnest(array['init', 'run', 'evaluate']) s (stage) where r.run_id = $1
       on conflict (rollout_id, attempt, stage) do update set started_at = excluded.started_at, ended_at = excluded.ended_at`,
      [runId],
    );
    const learns = async (model: string) => {
      const other = await startPlannedRun(database.pool, {
        groups: 2,
        groupSize: 1,
        config: { model: { name: model } },
      });
      return (await look(other.runId)).groups?.map(({ expectedMs }) => expectedMs);
    };
    expect(await learns("quickstart")).toEqual([{ init: 4000, run: 4000, evaluate: 4000 }, null]);
    expect(await learns("another")).toEqual([null, null]);
  });
});

describe("a group set aside", () => {
  test("ends what is unsettled of it with its leases, once, and leaves what is settled as it was", async () => {
    const { runId } = await startPlannedRun(database.pool, { groups: 2, groupSize: 4 });
    await act(database.pool, runId, admitAll(await look(runId), leases));
    const busy = await look(runId);
    const [first = "", second = ""] = groupIdsOf(busy, stepIdOf(busy, 1));
    const own = busy.rollouts.filter(({ groupId }) => groupId === first);
    const claimed = await claimFirst(runId, own[0]?.rolloutId ?? "");
    await act(database.pool, runId, own.slice(3).map(settle));
    const before = await look(runId);
    const plan = [aside(before, first)];
    const both = await Promise.all([act(database.pool, runId, plan, before), act(database.pool, runId, plan, before)]);
    expect(both.map(({ applied }) => applied).sort()).toEqual([0, 1]);
    await expect(writer.write({ ...claimed, to: { move: "next-stage", stage: "run" } })).rejects.toBeInstanceOf(
      FencedError,
    );
    const after = await look(runId);
    const endings = after.rollouts.filter(({ groupId }) => groupId === first).map(({ ending }) => ending);
    expect(endings).toEqual(["not_needed", "not_needed", "not_needed", "infrastructure"]);
    expect(after.held).toMatchObject({ initSlot: 4, sandbox: 4 });
    expect(after.groups?.map(({ setAside }) => setAside)).toEqual(["not-needed", null]);
    expect(await poolLedger(database.pool)).toEqual([]);
    expect((await bodies(runId)).filter(({ type }) => type === "group-set-aside")).toEqual([
      {
        type: "group-set-aside",
        groupId: first,
        stepId: stepIdOf(after, 1),
        as: "not-needed",
        cancelled: 3,
        reason: "tests",
      },
    ]);
    // Once the step updates, its groups are what they are.
    await act(database.pool, runId, after.rollouts.filter(({ state }) => state !== "settled").map(settle));
    const stepId = stepIdOf(after, 1);
    await act(database.pool, runId, [{ do: "begin-update", stepId }]);
    expect(await act(database.pool, runId, [aside(after, second)])).toMatchObject({ applied: 0, refused: 1 });
  });
});

describe("an update that leaves groups to the next step", () => {
  async function ready() {
    const { runId } = await startPlannedRun(database.pool, { groups: 3, groupSize: 2 });
    await act(database.pool, runId, admitAll(await look(runId), leases));
    const snapshot = await look(runId);
    const stepId = stepIdOf(snapshot, 1);
    const [gathered = "", ...left] = groupIdsOf(snapshot, stepId);
    const running = snapshot.rollouts.find(({ groupId }) => groupId === left[0])?.rolloutId ?? "";
    const claimed = await claimFirst(runId, running);
    await act(database.pool, runId, snapshot.rollouts.filter(({ groupId }) => groupId === gathered).map(settle));
    const begin: Action = { do: "begin-update", stepId, leave: { step: 2, groupIds: left } };
    return { runId, stepId, gathered, left, claimed, begin };
  }

  test("moves them with their rollouts in the same write; whoever runs one of them goes on", async () => {
    const { runId, stepId, gathered, left, claimed, begin } = await ready();
    const snapshot = await look(runId);
    const both = await Promise.all([
      act(database.pool, runId, [begin], snapshot),
      act(database.pool, runId, [begin], snapshot),
    ]);
    expect(both.flatMap(({ jobs }) => jobs)).toEqual([{ name: "update", payload: { runId, stepId } }]);
    await writer.write({ ...claimed, to: { move: "next-stage", stage: "run" } });
    const after = await look(runId);
    const next = stepIdOf(after, 2);
    expect(after.steps.map(({ step, state }) => [step, state])).toEqual([
      [1, "updating"],
      [2, "gathering"],
    ]);
    expect(groupIdsOf(after, stepId)).toEqual([gathered]);
    expect(groupIdsOf(after, next)).toEqual(left);
    for (const rollout of after.rollouts)
      expect(rollout.stepId).toBe(after.groups?.find(({ groupId }) => groupId === rollout.groupId)?.stepId);
    expect(after.held).toMatchObject({ initSlot: 3, sandbox: 4 });
    expect(await poolLedger(database.pool)).toEqual([]);
    expect((await bodies(runId)).slice(-4)).toMatchObject([
      { type: "step-status", stepId, from: "gathering", to: "updating" },
      { type: "step-created", stepId: next, step: 2, purpose: "train", groups: 2, rollouts: 4 },
      { type: "groups-moved", fromStepId: stepId, toStepId: next, step: 2, groupIds: left },
      { type: "rollout-status", rolloutId: claimed.rolloutId, stage: "run" },
    ]);
  });

  test("makes the next step with none left over, and uses the one that is there", async () => {
    const { runId, left, begin, stepId } = await ready();
    const snapshot = await look(runId);
    await act(database.pool, runId, snapshot.rollouts.map(settle), snapshot);
    await act(database.pool, runId, [createStep(2, 1, 1)]);
    await act(database.pool, runId, [begin]);
    const after = await look(runId);
    expect(groupIdsOf(after, stepIdOf(after, 2))).toHaveLength(1 + left.length);
    const positions = await database.pool.query("select position from groups where step_id = $1 order by 1", [
      stepIdOf(after, 2),
    ]);
    expect(positions.rows.map(({ position }) => position)).toEqual([0, 1, 2]);
    const second = stepIdOf(after, 2);
    await act(database.pool, runId, after.rollouts.filter(({ state }) => state !== "settled").map(settle));
    await database.pool.query("update steps set state = 'done' where id = $1", [stepId]);
    await act(database.pool, runId, [{ do: "begin-update", stepId: second, leave: { step: 3, groupIds: [] } }]);
    const last = await look(runId);
    expect(last.steps.find(({ step }) => step === 3)?.state).toBe("gathering");
    expect((await bodies(runId)).at(-1)).toMatchObject({ type: "step-created", step: 3, groups: 0, rollouts: 0 });
  });

  test("does not begin with something unsettled, with a group that is not its own, or on an older count", async () => {
    const { runId, left, begin, stepId } = await ready();
    const snapshot = await look(runId);
    const refused = { applied: 0, refused: 1, jobs: [] };
    expect(await act(database.pool, runId, [{ do: "begin-update", stepId }])).toMatchObject(refused);
    const few: Action = { do: "begin-update", stepId, leave: { step: 2, groupIds: left.slice(1) } };
    expect(await act(database.pool, runId, [few])).toMatchObject(refused);
    const foreign: Action = { do: "begin-update", stepId, leave: { step: 2, groupIds: [...left, "nobody"] } };
    expect(await act(database.pool, runId, [foreign])).toMatchObject(refused);
    await act(database.pool, runId, [more(snapshot, group(9))]);
    expect(await act(database.pool, runId, [begin], snapshot)).toMatchObject(refused);
    expect((await look(runId)).steps).toHaveLength(1);
  });
});

test("whatever two planners do at once: every group in one step with its rollouts, books and log right", async () => {
  const operation = fc.record({
    kind: fc.constantFrom("add", "aside", "update", "settle", "admit", "retry"),
    pick: fc.nat(20),
    twice: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(operation, operation), { minLength: 3, maxLength: 8 }), async (rounds) => {
      const { runId } = await startPlannedRun(database.pool, { groups: 3, groupSize: 2 });
      let started = 3;
      for (const round of rounds) {
        const snapshot = await look(runId);
        const plans = round.map(({ kind, pick, twice }) => planOf(snapshot, kind, pick, twice));
        const results = await Promise.all(plans.map((plan) => act(database.pool, runId, plan, snapshot)));
        for (const [at, { applied }] of results.entries()) if (round[at]?.kind === "add" && applied > 0) started += 1;
      }
      const { rows: astray } = await database.pool.query(
        `select r.id from rollouts r join groups g on g.id = r.group_id where r.run_id = $1 and r.step_id <> g.step_id`,
        [runId],
      );
      expect(astray).toEqual([]);
      const { rows: counts } = await database.pool.query(
        `select groups_drawn, (select count(*)::int from groups where run_id = $1) as groups,
           (select count(*)::int from rollouts r join groups g on g.id = r.group_id join steps s on s.id = g.step_id
             where s.run_id = $1 and r.state <> 'settled' and (s.state = 'updating' or g.set_aside is not null)) as late
         from runs where id = $1`,
        [runId],
      );
      expect(counts).toEqual([{ groups_drawn: started, groups: started, late: 0 }]);
      expect(await poolLedger(database.pool)).toEqual([]);
      await bodies(runId);
    }),
    { numRuns: 25 },
  );
});

/** What a planner might ask that saw this. */
function planOf(snapshot: RunSnapshot, kind: string, pick: number, twice: boolean): Action[] {
  const open = snapshot.steps.filter(({ state }) => state === "gathering");
  const step = open[pick % Math.max(open.length, 1)];
  const groups = (snapshot.groups ?? []).filter(({ stepId, setAside }) => stepId === step?.stepId && setAside === null);
  const chosen = groups[pick % Math.max(groups.length, 1)];
  const unsettled = snapshot.rollouts.filter(({ state }) => state !== "settled");
  const rollout = unsettled[pick % Math.max(unsettled.length, 1)];
  if (kind === "add" && step) return [{ ...more(snapshot, group(pick)), stepId: step.stepId } as Action];
  if (kind === "aside" && chosen) return Array.from({ length: twice ? 2 : 1 }, () => aside(snapshot, chosen.groupId));
  if (kind === "admit") return admitAll(snapshot, leases);
  if (kind === "settle") return unsettled.filter(({ groupId }) => groupId === rollout?.groupId).map(settle);
  if (kind === "retry" && rollout && rollout.state !== "waiting")
    return [{ do: "retry", rolloutId: rollout.rolloutId, attempt: rollout.attempt, notBefore: 0, reason: "tests" }];
  if (kind !== "update" || !step) return [];
  const over = (groupId: string) =>
    snapshot.rollouts.every((row) => row.groupId !== groupId || row.state === "settled");
  const groupIds = groups.filter(({ groupId }) => !over(groupId)).map(({ groupId }) => groupId);
  return [{ do: "begin-update", stepId: step.stepId, leave: { step: step.step + 1, groupIds } }];
}
