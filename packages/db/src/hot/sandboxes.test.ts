import { FencedError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts } from "../../testing/seed-rollouts.ts";
import { agentSandbox, type LiveSandbox, liveSandboxes, readDeployment } from "../reads/live-sandboxes.ts";
import { keepSandbox, letKeptSandboxGo } from "./kept-sandboxes.ts";
import { logShell, type NewSandboxRow, planSandbox, sandboxEnded, sandboxOpened } from "./sandboxes.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

let made = 0;
const newRow = (rollout: SeededRollout, change: Partial<NewSandboxRow> = {}): NewSandboxRow => ({
  ...rollout,
  id: `sbx_${String(++made).padStart(20, "0")}`,
  purpose: "agent",
  runtime: "docker",
  image: "some/image:1",
  network: "none",
  inPlace: false,
  ...change,
});
const seeded = async (stage: "init" | "run" | "evaluate" = "run"): Promise<SeededRollout> =>
  (await seedRollouts(database.pool, { count: 1, stage })).rollouts[0] as SeededRollout;

async function opened(rollout: SeededRollout, change: Partial<NewSandboxRow> = {}): Promise<string> {
  const row = newRow(rollout, change);
  await planSandbox(database.pool, row);
  await sandboxOpened(database.pool, row, { id: row.id, phases: { open: 12.34 } });
  return row.id;
}
const live = async (id: string): Promise<LiveSandbox | undefined> =>
  (await liveSandboxes(database.pool)).find((row) => row.id === id);
const set = (rollout: SeededRollout, assignments: string) =>
  database.pool.query(`update rollouts set ${assignments} where id = $1`, [rollout.rolloutId]);
const eventsOf = async (rollout: SeededRollout) => {
  const { rows } = await database.pool.query("select seq, body from events where run_id = $1 order by seq", [
    rollout.runId,
  ]);
  return rows.map(({ body }) => body);
};

test("a sandbox has its row before it is opened, and its story in the log", async () => {
  const rollout = await seeded();
  const row = newRow(rollout);
  await planSandbox(database.pool, row);
  expect(await live(row.id)).toMatchObject({ state: "opening", due: null });
  expect(await agentSandbox(database.pool, rollout.rolloutId, 1)).toBeNull();
  await sandboxOpened(database.pool, row, { id: row.id, phases: { open: 12.34 } });
  expect(await agentSandbox(database.pool, rollout.rolloutId, 1)).toEqual({
    id: row.id,
    runtime: "docker",
    keep: false,
    environment: false,
  });
  expect(await sandboxEnded(database.pool, row.id, { state: "closed", reason: "done" })).toBe(true);
  expect(await sandboxEnded(database.pool, row.id, { state: "lost", reason: "again" })).toBe(false);
  expect(await eventsOf(rollout)).toEqual([
    expect.objectContaining({ type: "sandbox-opened", sandboxId: row.id, openMs: 12.3 }),
    expect.objectContaining({ type: "sandbox-closed", sandboxId: row.id, state: "closed", reason: "done" }),
  ]);
});

test("a worker whose claim is gone can't have one", async () => {
  const rollout = await seeded();
  const row = newRow(rollout);
  await planSandbox(database.pool, row);
  await set(rollout, "claim = claim + 1");
  await expect(sandboxOpened(database.pool, row, { id: row.id, phases: {} })).rejects.toBeInstanceOf(FencedError);
  await expect(planSandbox(database.pool, newRow(rollout))).rejects.toBeInstanceOf(FencedError);
  expect(await agentSandbox(database.pool, rollout.rolloutId, 1)).toBeNull();
});

test.each([
  ["while its agent works", "run", {}, "state = 'active'", null],
  ["between stages, whoever claims next", "run", {}, "state = 'waiting', claim = claim + 3", null],
  ["when another worker sets up", "init", {}, "claim = claim + 1", "another worker sets up"],
  ["when its attempt is over", "run", {}, "attempt = 2, stage = 'init'", "another attempt was begun"],
  ["when its rollout is over", "run", {}, "state = 'settled'", "its rollout is over"],
  ["when its agent is done", "run", {}, "stage = 'evaluate'", "its agent is done"],
  ["not while the verifier works in it", "run", { inPlace: true }, "stage = 'evaluate', claim = claim + 1", null],
  ["while it is graded", "evaluate", { purpose: "grade" }, "state = 'active'", null],
  ["when its grading was taken over", "evaluate", { purpose: "grade" }, "claim = claim + 1", "its grading is over"],
] as const)("due %s", async (_when, stage, change, after, due) => {
  const rollout = await seeded(stage);
  const id = await opened(rollout, change);
  await set(rollout, after);
  expect(await live(id)).toMatchObject({ due });
});

test("of two that set-ups of one attempt left, the newer is the agent's", async () => {
  const rollout = await seeded("init");
  const first = await opened(rollout);
  await set(rollout, "claim = claim + 1");
  const second = await opened({ ...rollout, claim: rollout.claim + 1 });
  await set(rollout, "stage = 'run', claim = claim + 1");
  expect(await agentSandbox(database.pool, rollout.rolloutId, 1)).toMatchObject({ id: second });
  expect(await live(first)).toMatchObject({ due: "another one took its place" });
  expect(await live(second)).toMatchObject({ due: null });
});

test("one that is to be kept stays until its time is over, or until it is let go", async () => {
  const rollout = await seeded();
  const id = await opened(rollout);
  expect(await keepSandbox(database.pool, id, 10, null)).toEqual({ is: "kept" });
  await set(rollout, "state = 'settled'");
  expect(await live(id)).toMatchObject({ due: "its rollout is over", keep: true });
  await sandboxEnded(database.pool, id, { state: "kept", reason: "its rollout is over" });
  expect(await live(id)).toMatchObject({ state: "kept", due: null });
  expect(await letKeptSandboxGo(database.pool, id, "owner")).toBe(true);
  expect(await live(id)).toMatchObject({ due: "it was kept as long as asked" });
  expect(await sandboxEnded(database.pool, id, { state: "closed", reason: null })).toBe(true);
  expect(await keepSandbox(database.pool, id, 10, "owner")).toEqual({ is: "not-there" });
  expect(await letKeptSandboxGo(database.pool, id, "owner")).toBe(false);
});

test("a shell into one is on record, and there is none into one that is closed", async () => {
  const rollout = await seeded();
  const id = await opened(rollout);
  expect(await logShell(database.pool, { sandboxId: id, action: "opened", by: "owner" })).toBe(true);
  await sandboxEnded(database.pool, id, { state: "closed", reason: null });
  expect(await logShell(database.pool, { sandboxId: id, action: "closed", by: "owner" })).toBe(true);
  expect(await logShell(database.pool, { sandboxId: id, action: "opened", by: "owner" })).toBe(false);
  const shells = (await eventsOf(rollout)).filter(({ type }) => type === "sandbox-shell");
  expect(shells.map(({ action, by }) => [action, by])).toEqual([
    ["opened", "owner"],
    ["closed", "owner"],
  ]);
});

test("each database has a name of its own on the hosts that sandboxes run on", async () => {
  const name = await readDeployment(database.pool);
  expect(name).toMatch(/^[0-9a-f]{32}$/);
  expect(await readDeployment(database.pool)).toBe(name);
});
