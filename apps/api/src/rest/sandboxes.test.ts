/** Sandboxes over REST and tRPC: lists, keeping, letting go, who may, and what the run's log says of it. */
import { Problem } from "@rolldeck/contracts/api/problems";
import { EventPage } from "@rolldeck/contracts/api/runs";
import { RolloutSandboxes, RunSandboxes, SandboxInfo } from "@rolldeck/contracts/api/sandboxes";
import { seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
let runId: string;
let rolloutId: string;
const ids = { closed: "", open: "", kept: "", opening: "" };
beforeAll(async () => {
  api = await startTestApi();
  const { pool } = api.database;
  runId = await seedRun(pool);
  const { rolloutIds } = await seedStep(pool, runId, {
    step: 1,
    rollouts: [
      { reward: null, ending: null },
      { reward: null, ending: null },
    ],
  });
  rolloutId = rolloutIds[0] ?? "";
  const of = { runId, rolloutId };
  ids.closed = await seedSandbox(pool, { ...of, state: "closed", reason: "its agent is done", createdSecondsAgo: 300 });
  ids.open = await seedSandbox(pool, {
    ...of,
    state: "open",
    phases: { open: 90.5, setUp: 12 },
    createdSecondsAgo: 200,
  });
  ids.kept = await seedSandbox(pool, { ...of, state: "kept", keepMinutes: 20, createdSecondsAgo: 100 });
  ids.opening = await seedSandbox(pool, { ...of, state: "opening", createdSecondsAgo: 0, image: null });
  await seedSandbox(pool, { runId, rolloutId: rolloutIds[1] ?? "", state: "lost", attempt: 1 });
});
afterAll(() => api.close());

const get = async <T extends z.ZodType>(path: string, reply: T) =>
  reply.parse(await (await api.fetch(`/api/v1${path}`)).json());
const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  api.fetch(`/api/v1${path}`, jsonPost(body, headers));
const notes = async () =>
  (await get(`/runs/${runId}/events`, EventPage)).events.flatMap(({ body }) =>
    body.type === "note" ? [body.message] : [],
  );
const minutesFromNow = (at: string | null) => Math.round((Date.parse(at ?? "") - Date.now()) / 60_000);
const token = async (scope: "read" | "write") => {
  const made: unknown = await (await post("/tokens", { name: `of ${scope}`, scope })).json();
  return z.object({ secret: z.string(), tokenId: z.string() }).parse(made);
};

describe("lists", () => {
  it("of a rollout have all its attempts', newest first", async () => {
    const { sandboxes, more } = await get(`/rollouts/${rolloutId}/sandboxes`, RolloutSandboxes);
    expect(sandboxes.map((each) => each.sandboxId)).toEqual([ids.opening, ids.kept, ids.open, ids.closed]);
    expect(more).toBe(false);
    expect(sandboxes[2]).toMatchObject({ state: "open", phases: { open: 90.5, setUp: 12 }, keepUntil: null });
    expect(sandboxes[0]).toMatchObject({ state: "opening", openedAt: null, image: null });
    const named = await api.database.pool.query(
      'select g.instance_id as "instanceId", r.sample from rollouts r join groups g on g.id = r.group_id where r.id = $1',
      [rolloutId],
    );
    for (const sandbox of sandboxes) expect(sandbox).toMatchObject(named.rows[0]);
    expect(sandboxes[3]).toMatchObject({ reason: "its agent is done", closedAt: expect.any(String) });
  });

  it("of a run have those that are there, all on request, and counts of every state", async () => {
    const live = await get(`/runs/${runId}/sandboxes`, RunSandboxes);
    expect(live.counts).toEqual({ opening: 1, open: 1, kept: 1, closed: 1, lost: 1 });
    expect(live.sandboxes.map((each) => each.sandboxId)).toEqual([ids.opening, ids.kept, ids.open]);
    const some = await get(`/runs/${runId}/sandboxes?which=all&limit=2`, RunSandboxes);
    expect([some.sandboxes.length, some.more]).toEqual([2, true]);
    expect((await get(`/runs/${runId}/sandboxes?which=all`, RunSandboxes)).sandboxes).toHaveLength(5);
  });

  it("of what is not there are 404", async () => {
    for (const path of ["/rollouts/aaaaaaaaaa/sandboxes", "/runs/aaaaaaaaaa/sandboxes"])
      expect((await api.fetch(`/api/v1${path}`)).status).toBe(404);
  });
});

describe("keeping", () => {
  it("one in use or kept counts from now, and the log says who did it", async () => {
    for (const id of [ids.open, ids.kept]) {
      const kept = SandboxInfo.parse(await (await post(`/sandboxes/${id}/keep`, { minutes: 90 })).json());
      expect([kept.sandboxId, minutesFromNow(kept.keepUntil)]).toEqual([id, 90]);
    }
    expect(await notes()).toContain(`the owner keeps sandbox ${ids.open} of rollout ${rolloutId} for 90 min`);
  });

  it("one that is gone or not there yet is refused in words", async () => {
    const gone = await post(`/sandboxes/${ids.closed}/keep`);
    expect([gone.status, Problem.parse(await gone.json()).detail]).toEqual([
      409,
      "The sandbox is closed: it can't be kept any more.",
    ]);
    const coming = await post(`/sandboxes/${ids.opening}/keep`);
    expect([coming.status, Problem.parse(await coming.json()).detail]).toEqual([
      409,
      "The sandbox is still being opened: it can't be kept yet.",
    ]);
    expect((await post(`/sandboxes/sbx_${"0".repeat(20)}/keep`)).status).toBe(404);
    expect((await post("/sandboxes/x/keep")).status).toBe(400);
    expect((await post(`/sandboxes/${ids.open}/keep`, { minutes: 1441 })).status).toBe(400);
  });

  it("with an Idempotency-Key is done and noted once", async () => {
    const before = (await notes()).length;
    for (const _ of [1, 2])
      expect((await post(`/sandboxes/${ids.kept}/keep`, {}, { "idempotency-key": "once" })).status).toBe(200);
    expect(await notes()).toHaveLength(before + 1);
  });
});

describe("letting go", () => {
  it("takes one that is kept, whose time is then over", async () => {
    const id = await seedSandbox(api.database.pool, { runId, rolloutId, state: "kept", keepMinutes: 60 });
    const answer = SandboxInfo.parse(await (await post(`/sandboxes/${id}/close`)).json());
    expect(Date.parse(answer.keepUntil ?? "")).toBeLessThanOrEqual(Date.now());
    expect((await notes()).at(-1)).toBe(`the owner lets kept sandbox ${id} of rollout ${rolloutId} go`);
  });

  it("does not take one from under its agent", async () => {
    const answer = await post(`/sandboxes/${ids.open}/close`);
    expect(answer.status).toBe(409);
    expect(Problem.parse(await answer.json()).detail).toContain("in use by its rollout");
  });
});

describe("who may", () => {
  it("read with a token that reads, change with one that writes, and neither without", async () => {
    const [reader, writer] = [await token("read"), await token("write")];
    const as = (secret: string) => ({ authorization: `Bearer ${secret}` });
    const list = (headers: Record<string, string>) => api.fetch(`/api/v1/rollouts/${rolloutId}/sandboxes`, { headers });
    expect((await list(as(reader.secret))).status).toBe(200);
    expect((await list(as("nothing"))).status).toBe(401);
    const keep = (headers: Record<string, string>) => post(`/sandboxes/${ids.open}/keep`, {}, headers);
    expect((await keep(as(reader.secret))).status).toBe(403);
    expect((await keep(as(writer.secret))).status).toBe(200);
    expect((await notes()).at(-1)).toContain(`of write (token:${writer.tokenId}) keeps sandbox`);
    expect((await keep({ origin: "http://elsewhere.example" })).status).toBe(403);
    const trpc = (secret: string) =>
      api.fetch("/api/trpc/sandboxes.keep", jsonPost({ sandboxId: ids.open }, as(secret)));
    expect((await trpc(reader.secret)).status).toBe(403);
    expect((await trpc(writer.secret)).status).toBe(200);
  });
});
