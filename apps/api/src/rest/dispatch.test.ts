/** Commands on a run's dispatch over REST: what they do to rows and log, once for all that ask alike, and who may. */
import { DispatcherReply, PartReply, Quotas } from "@rolldeck/contracts/api/dispatch";
import { Problem } from "@rolldeck/contracts/api/problems";
import { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { EventPage, Matrix, RunDetail } from "@rolldeck/contracts/api/runs";
import type { EventBody } from "@rolldeck/contracts/events";
import type { NewLease } from "@rolldeck/contracts/plan";
import { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import { claimStage } from "@rolldeck/db/hot/claim-stage";
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { act, admitAll, snapshotOf, startPlannedRun } from "@rolldeck/db/testing/planned-run";
import { turnEntry } from "@rolldeck/db/testing/seed-rollouts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  api.fetch(`/api/v1${path}`, jsonPost(body, headers));
const done = async <T extends z.ZodType>(reply: T, path: string, body: unknown = {}) => {
  const answer: unknown = await (await post(path, body)).json();
  return reply.parse(answer);
};
const refusal = async (response: Response | Promise<Response>) => {
  const { status, detail } = Problem.parse(await (await response).json());
  return { status, detail };
};
const look = (runId: string) => snapshotOf(api.database.pool, runId);
const detail = async (runId: string) => RunDetail.parse(await (await api.fetch(`/api/v1/runs/${runId}`)).json());
const log = async <T extends EventBody["type"]>(runId: string, type: T) => {
  const page = EventPage.parse(await (await api.fetch(`/api/v1/runs/${runId}/events`)).json());
  return page.events.flatMap(({ body }) => (body.type === type ? [body as Extract<EventBody, { type: T }>] : []));
};
const leases: NewLease[] = [
  { resource: "initSlot", until: "init" },
  { resource: "sandbox", until: "run" },
];
const start = (groups = 2, groupSize = 2) => startPlannedRun(api.database.pool, { groups, groupSize });
const admit = async (runId: string) => act(api.database.pool, runId, admitAll(await look(runId), leases));
const parts = async (runId: string) => {
  const { steps, groups, rollouts } = await look(runId);
  return {
    step: steps[0]?.stepId ?? "",
    group: groups?.[0]?.groupId ?? "",
    rollout: rollouts[0]?.rolloutId ?? "",
  };
};

describe("draining", () => {
  const Status = z.object({ status: z.string() });
  it("is asked once, shown, and taken back by resume", async () => {
    const { runId } = await start();
    for (let n = 0; n < 2; n++)
      expect(await done(Status, `/runs/${runId}/drain`, { reason: "maintenance" })).toEqual({ status: "running" });
    expect((await detail(runId)).draining).toBe(true);
    expect((await look(runId)).draining).toBe(true);
    for (let n = 0; n < 2; n++) expect(await done(Status, `/runs/${runId}/resume`)).toEqual({ status: "running" });
    expect((await look(runId)).draining).toBe(false);
    expect(await log(runId, "drain-changed")).toEqual([
      { type: "drain-changed", draining: true, by: "the owner", reason: "maintenance" },
      { type: "drain-changed", draining: false, by: "the owner", reason: null },
    ]);
  });
  it("that ended in a pause is over when the run goes on", async () => {
    const { runId } = await start();
    await post(`/runs/${runId}/drain`);
    await moveRun(api.database.pool, runId, "pausing", null);
    await moveRun(api.database.pool, runId, "paused", null);
    expect(await done(Status, `/runs/${runId}/drain`)).toEqual({ status: "paused" });
    expect(await done(Status, `/runs/${runId}/resume`)).toEqual({ status: "queued" });
    expect((await look(runId)).draining).toBe(false);
  });
  it("is refused where nothing is begun yet or any more", async () => {
    const { runId } = await start();
    await moveRun(api.database.pool, runId, "stopping", null);
    expect(await refusal(post(`/runs/${runId}/drain`))).toEqual({
      status: 409,
      detail: "A run that is stopping can't drain.",
    });
  });
});

describe("a dispatcher", () => {
  it("is changed while the run runs: what is left out stays, of the bounds, too", async () => {
    const { runId } = await start();
    const first = await done(DispatcherReply, `/runs/${runId}/dispatcher`, { bounds: { run: 7 }, weight: 2 });
    expect(first.dispatcher).toMatchObject({ bounds: { init: 64, run: 7, evaluate: 32 }, weight: 2, priority: 0 });
    const second = await done(DispatcherReply, `/runs/${runId}/dispatcher`, { bounds: { evaluate: 3 } });
    expect(second.change).toEqual({ bounds: { init: 64, run: 7, evaluate: 3 }, weight: 2 });
    expect((await look(runId)).config.dispatcher).toEqual(second.dispatcher);
    expect((await detail(runId)).dispatch).toEqual(second.change);
    // What is so already is no change; no limit on starts is one.
    await done(DispatcherReply, `/runs/${runId}/dispatcher`, { weight: 2, startsPerSecond: null });
    await done(DispatcherReply, `/runs/${runId}/dispatcher`, { startsPerSecond: 4 });
    const last = await done(DispatcherReply, `/runs/${runId}/dispatcher`, { startsPerSecond: null });
    expect(last.dispatcher.startsPerSecond).toBeNull();
    expect(await log(runId, "dispatcher-changed")).toMatchObject([
      { by: "the owner", change: first.change },
      { change: second.change },
      { change: { startsPerSecond: 4 } },
      { change: { startsPerSecond: null } },
    ]);
  });
  it("follows the engine's load only where there is one that tells it", async () => {
    const { runId } = await start();
    const { dispatcher } = await done(DispatcherReply, `/runs/${runId}/dispatcher`, { adaptive: true });
    expect(dispatcher.adaptive).toBe(true);
    const backend = { name: "openai-chat", endpoint: "http://127.0.0.1:1" };
    const chat = await startPlannedRun(api.database.pool, { config: { kind: "evaluate", backend } });
    expect(await refusal(post(`/runs/${chat.runId}/dispatcher`, { adaptive: true }))).toEqual({
      status: 400,
      detail: expect.stringMatching(/^adaptive: this server does not tell how full its engine is/),
    });
    await done(DispatcherReply, `/runs/${chat.runId}/dispatcher`, { adaptive: false });
  });
  it("is not changed to what launch would refuse, nor of a run that is over", async () => {
    const { runId } = await start();
    for (const [change, words] of [
      [{ bounds: { run: 0 } }, /^bounds\.run/],
      [{ name: "batch" }, /^name: unknown key/],
    ] as const)
      expect(await refusal(post(`/runs/${runId}/dispatcher`, change))).toMatchObject({
        status: 400,
        detail: expect.stringMatching(words),
      });
    expect((await detail(runId)).dispatch).toBeNull();
    await moveRun(api.database.pool, runId, "stopping", null);
    await moveRun(api.database.pool, runId, "stopped", null);
    expect(await refusal(post(`/runs/${runId}/dispatcher`, { weight: 2 }))).toEqual({
      status: 409,
      detail: "The run is stopped: nothing is dispatched any more.",
    });
  });
});

describe("a part that is held", () => {
  it.each(["step", "group", "rollout"] as const)("stays so until it is let go: %s", async (part) => {
    const { runId } = await start();
    const id = (await parts(runId))[part];
    const held = async () => {
      const { groups, rollouts } = await look(runId);
      return [groups?.map((each) => each.held), rollouts.map((each) => each.held)];
    };
    for (let n = 0; n < 2; n++)
      expect(await done(PartReply, `/${part}s/${id}/hold`)).toEqual({
        runId,
        part,
        id,
        held: true,
        over: false,
        cancelled: 0,
      });
    const none = [false, false, false, false];
    expect(await held()).toEqual(
      {
        step: [[true, true], none],
        group: [[true, false], none],
        rollout: [
          [false, false],
          [true, ...none.slice(1)],
        ],
      }[part],
    );
    await done(PartReply, `/${part}s/${id}/resume`);
    expect((await done(PartReply, `/${part}s/${id}/resume`)).held).toBe(false);
    expect(await held()).toEqual([[false, false], none]);
    expect((await log(runId, "hold-changed")).map((event) => [event.part, event.id, event.held])).toEqual([
      [part, id, true],
      [part, id, false],
    ]);
  });
  it("must have something left to hold", async () => {
    const { runId } = await start();
    const { rollout, group } = await parts(runId);
    await post(`/groups/${group}/cancel`);
    for (const path of [`/rollouts/${rollout}`, `/groups/${group}`])
      expect((await refusal(post(`${path}/hold`))).detail).toMatch(/over: there is nothing left/);
    expect((await refusal(post("/rollouts/nothere12345/hold"))).status).toBe(404);
  });
});

describe("a part that is cancelled", () => {
  it("rollout: ends at once, its worker writes nothing more, its turns can be read", async () => {
    const { runId } = await start();
    await admit(runId);
    const { rollout: rolloutId } = await parts(runId);
    const claimed = await claimStage(api.database.pool, { rolloutId, attempt: 1, stage: "init", workerId: "w1" });
    const holder = { runId, rolloutId, attempt: 1, claim: claimed?.claim ?? 0 };
    const writer = new BatchWriter(api.database.pool);
    await writer.write(turnEntry(holder, 0));
    const both = await Promise.all(
      [1, 2].map(() => done(PartReply, `/rollouts/${rolloutId}/cancel`, { reason: "slow" })),
    );
    expect(both.map(({ cancelled, over }) => [cancelled, over]).sort()).toEqual([
      [0, true],
      [1, true],
    ]);
    await expect(writer.write(turnEntry(holder, 1))).rejects.toThrow(/fenced/);
    await writer.close();
    const after = await look(runId);
    expect(after.rollouts[0]).toMatchObject({
      outcome: "cancelled",
      ending: "cancelled",
      reason: "cancelled by the owner: slow",
      holds: [],
    });
    expect(after.held.sandbox).toBe(3);
    const { rows } = await api.database.pool.query("select count(*)::int as n from transitions where rollout_id = $1", [
      rolloutId,
    ]);
    expect(rows[0].n).toBe(1);
  });

  it("group: is set aside with what is unsettled of it", async () => {
    const { runId } = await start();
    await admit(runId);
    const { group } = await parts(runId);
    expect(await done(PartReply, `/groups/${group}/cancel`)).toMatchObject({ over: true, cancelled: 2 });
    expect(await done(PartReply, `/groups/${group}/cancel`)).toMatchObject({ over: true, cancelled: 0 });
    expect((await look(runId)).groups?.map(({ setAside }) => setAside)).toEqual(["cancelled", null]);
    expect(await log(runId, "group-set-aside")).toMatchObject([{ cancelled: 2, reason: "cancelled by the owner" }]);
    const matrix = Matrix.parse(await (await api.fetch(`/api/v1/runs/${runId}/matrix`)).json());
    expect(matrix.groups.map(({ setAside, held }) => [setAside, held])).toEqual([
      ["cancelled", false],
      [null, false],
    ]);
    const { rolloutId } = matrix.groups[0]?.cells[0] ?? { rolloutId: "" };
    const rollout = RolloutDetail.parse(await (await api.fetch(`/api/v1/rollouts/${rolloutId}`)).json());
    expect(rollout).toMatchObject({ setAside: "cancelled", held: false, firstVersion: null });
    expect(rollout.fate).toMatchObject({ state: "not-trained", reason: "its group was set aside: cancelled" });
  });

  it("step: ends with all that is unsettled of it, unless its update has begun", async () => {
    const { runId } = await start();
    await admit(runId);
    const { step, rollout } = await parts(runId);
    await post(`/rollouts/${rollout}/cancel`);
    const both = await Promise.all([1, 2].map(() => done(PartReply, `/steps/${step}/cancel`)));
    expect(both.map(({ cancelled }) => cancelled).sort()).toEqual([0, 3]);
    expect((await look(runId)).rollouts).toEqual([]);
    expect((await log(runId, "step-status")).at(-1)).toMatchObject({
      to: "cancelled",
      reason: "cancelled by the owner",
    });
    expect(await poolLedger(api.database.pool)).toEqual([]);

    const other = await start(1, 1);
    const open = await parts(other.runId);
    await post(`/rollouts/${open.rollout}/cancel`);
    await act(api.database.pool, other.runId, [{ do: "begin-update", stepId: open.step }]);
    expect(await refusal(post(`/steps/${open.step}/cancel`))).toMatchObject({
      status: 409,
      detail: expect.stringContaining("update has begun"),
    });
    expect(await refusal(post(`/groups/${open.group}/cancel`))).toMatchObject({
      status: 409,
      detail: expect.stringContaining("updating"),
    });
  });
});

describe("quotas", () => {
  const mine = { project: "alpha", resource: "sandbox", quota: 4 };
  it("and pools are set by the owner and shown to all", async () => {
    expect((await done(Quotas, "/quotas", mine)).quotas).toEqual([mine]);
    const set = await done(Quotas, "/pools/sandbox", { size: 288, evaluationReserve: 16 });
    expect(set.pools.find(({ resource }) => resource === "sandbox")).toMatchObject({
      size: 288,
      evaluationReserve: 16,
    });
    expect(Quotas.parse(await (await api.fetch("/api/v1/quotas")).json())).toEqual(set);
    expect((await done(Quotas, "/quotas", { ...mine, quota: null })).quotas).toEqual([]);
    expect((await refusal(post("/quotas", { ...mine, resource: "luck" }))).status).toBe(400);
  });
});

it("tokens may do what their scope says, and none sets a quota", async () => {
  const { runId } = await start();
  const { rollout } = await parts(runId);
  const token = async (scope: string) =>
    z.object({ secret: z.string() }).parse(await (await post("/tokens", { name: scope, scope })).json()).secret;
  const as = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const [read, write] = [as(await token("read")), as(await token("write"))];
  const paths = [`/runs/${runId}/drain`, `/runs/${runId}/dispatcher`, `/rollouts/${rollout}/hold`];
  for (const path of paths) {
    expect((await post(path, {}, read)).status).toBe(403);
    expect((await post(path, {}, write)).status).toBe(200);
    expect((await post(path, {}, { authorization: "Bearer no" })).status).toBe(401);
  }
  for (const path of ["/quotas", "/pools/sandbox"]) expect((await post(path, {}, write)).status).toBe(403);
});
