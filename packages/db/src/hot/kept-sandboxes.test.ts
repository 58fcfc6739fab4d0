import { heldReason } from "@rolldeck/contracts/api/sandboxes";
import type { NewLease } from "@rolldeck/contracts/plan";
import { afterEach, beforeEach, expect, test } from "vitest";
import { act, admitAll, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts } from "../../testing/seed-rollouts.ts";
import { liveSandboxes } from "../reads/live-sandboxes.ts";
import { poolLedger, readDemands, readGrants, readPools, setPoolSizes } from "../reconcile/pools.ts";
import { decideHeldSandbox, keepSandbox, letKeptSandboxGo } from "./kept-sandboxes.ts";
import { planSandbox, sandboxEnded, sandboxOpened } from "./sandboxes.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase({ max: 20 });
});
afterEach(() => database.drop());

let made = 0;
async function opened(rollout: SeededRollout): Promise<string> {
  const id = `sbx_${String(++made).padStart(20, "0")}`;
  const row = {
    ...rollout,
    id,
    purpose: "agent",
    runtime: "docker",
    image: null,
    network: "none",
    inPlace: false,
  } as const;
  await planSandbox(database.pool, row);
  await sandboxOpened(database.pool, row, { id, phases: {} });
  return id;
}
const seeded = async (count: number) => (await seedRollouts(database.pool, { count, stage: "run" })).rollouts;
const openedAll = async (count: number) => Promise.all((await seeded(count)).map(opened));
const end = (id: string, state: "kept" | "closed", reason = "done") =>
  sandboxEnded(database.pool, id, { state, reason });
const room = async () => (await readPools(database.pool)).find(({ resource }) => resource === "sandbox")?.size;
const notes = async () =>
  (await database.pool.query("select body ->> 'message' as m from events where type = 'note' order by seq")).rows.map(
    ({ m }) => m,
  );

test("however many ask at once, one of the pool is left, and who is refused hears how it stands", async () => {
  await setPoolSizes(database.pool, { sandbox: 4 });
  const ids = await openedAll(12);
  const answers = await Promise.all(ids.map((id) => keepSandbox(database.pool, id, 10, null)));
  const count = (is: string) => answers.filter((answer) => answer.is === is).length;
  expect([count("kept"), count("no-room")]).toEqual([3, 9]);
  const refused = ids[answers.findIndex(({ is }) => is === "no-room")] ?? "";
  const kept = ids[answers.findIndex(({ is }) => is === "kept")] ?? "";
  expect(await keepSandbox(database.pool, refused, 10, "owner")).toEqual({ is: "no-room", kept: 3, most: 3 });
  // One that stays already may stay longer.
  expect(await keepSandbox(database.pool, kept, 60, "owner")).toEqual({ is: "kept" });
  await end(kept, "closed");
  expect(await keepSandbox(database.pool, refused, 10, "owner")).toEqual({ is: "kept" });
});

test("kept ones take room of the pool, from admission as from sharing, and never all of it", async () => {
  await setPoolSizes(database.pool, { sandbox: 4 });
  const kept = (await openedAll(3)).slice(0, 2);
  for (const id of kept) {
    await keepSandbox(database.pool, id, 10, null);
    await end(id, "kept");
  }
  expect(await room()).toBe(2);
  const leases: NewLease[] = [{ resource: "sandbox", until: "run" }];
  const { runId } = await startPlannedRun(database.pool, { groups: 2, groupSize: 4 });
  expect((await readGrants(database.pool, runId)).sandbox).toBe(2);
  expect((await readDemands(database.pool)).find(({ pool }) => pool.resource === "sandbox")?.pool.size).toBe(2);
  const snapshot = await snapshotOf(database.pool, runId);
  await act(database.pool, runId, admitAll(snapshot, leases), snapshot);
  expect((await snapshotOf(database.pool, runId)).held.sandbox).toBe(2);
  expect(await poolLedger(database.pool)).toEqual([]);
  await end(kept[0] ?? "", "closed");
  expect(await room()).toBe(3);
});

test("a pool made smaller than what is kept leaves one all the same", async () => {
  await setPoolSizes(database.pool, { sandbox: 5 });
  for (const id of await openedAll(4)) {
    await keepSandbox(database.pool, id, 10, null);
    await end(id, "kept");
  }
  await setPoolSizes(database.pool, { sandbox: 2 });
  expect(await room()).toBe(1);
});

test("one that is marked while its rollout holds a lease takes no second room", async () => {
  await setPoolSizes(database.pool, { sandbox: 4 });
  const [rollout] = await seeded(1);
  if (rollout === undefined) throw new TypeError("no rollout");
  const id = await opened(rollout);
  await database.pool.query(
    "insert into pool_leases (resource, rollout_id, run_id, attempt, until) values ('sandbox', $1, $2, 1, 'run')",
    [rollout.rolloutId, rollout.runId],
  );
  await keepSandbox(database.pool, id, 10, null);
  expect(await room()).toBe(4);
  await database.pool.query("delete from pool_leases where rollout_id = $1", [rollout.rolloutId]);
  expect(await room()).toBe(3);
});

test("what is held for grading goes or stays with the verdict, unless somebody kept it, and goes with its rollout", async () => {
  const rollouts = await seeded(4);
  const [lost, won, owned, undecided] = await Promise.all(rollouts.map(opened));
  for (const id of [lost, won, owned, undecided]) {
    await keepSandbox(database.pool, id ?? "", 10, null);
    await end(id ?? "", "kept", heldReason);
  }
  await keepSandbox(database.pool, owned ?? "", 20, "the owner");
  const [ofLost, ofWon, ofOwned] = rollouts as [SeededRollout, SeededRollout, SeededRollout];
  await decideHeldSandbox(database.pool, ofLost, 30);
  await decideHeldSandbox(database.pool, ofWon, null);
  await decideHeldSandbox(database.pool, ofOwned, null);
  await database.pool.query("update rollouts set state = 'settled'");
  const due = new Map((await liveSandboxes(database.pool)).map((row) => [row.id, row.due]));
  expect([lost, won, owned, undecided].map((id) => due.get(id ?? ""))).toEqual([
    null,
    "it was kept as long as asked",
    null,
    "its rollout is over",
  ]);
  const closing = { state: "closed", reason: "its rollout is over", unlessKept: true } as const;
  expect(await sandboxEnded(database.pool, owned ?? "", closing)).toBe(false);
  expect(await sandboxEnded(database.pool, undecided ?? "", closing)).toBe(true);
});

test("who kept one or let it go is in the log with that change, once; the run's own setting is no one", async () => {
  const [id = "", other = ""] = await openedAll(2);
  await keepSandbox(database.pool, other, 10, null);
  expect(await notes()).toEqual([]);
  await keepSandbox(database.pool, id, 90, "the owner");
  await end(id, "kept");
  expect(await letKeptSandboxGo(database.pool, id, "token ci")).toBe(true);
  await end(id, "closed");
  expect(await letKeptSandboxGo(database.pool, id, "token ci")).toBe(false);
  expect(await keepSandbox(database.pool, id, 90, "the owner")).toEqual({ is: "not-there" });
  expect(await notes()).toEqual([
    expect.stringMatching(new RegExp(`^the owner keeps sandbox ${id} of rollout .+ for 90 min$`)),
    expect.stringMatching(new RegExp(`^token ci lets kept sandbox ${id} of rollout .+ go$`)),
  ]);
});
