import { expect, test } from "vitest";
import { act, admitAll, plainTasks, snapshotOf, startPlannedRun } from "../../testing/planned-run.ts";
import { createTestDatabase } from "../../testing/postgres.ts";
import { readSnapshot } from "../reconcile/read-snapshot.ts";
import { markHandled, runsBehind, wakeRun } from "./wake.ts";

test("a run is behind by an unhandled wake, a due timer or a past lease, and only then", async () => {
  const own = await createTestDatabase();
  const { runId } = await startPlannedRun(own.pool, { groups: 1, groupSize: 1 });
  const handle = async (wakeAt: number | null) =>
    markHandled(own.pool, runId, (await readSnapshot(own.pool, runId, plainTasks))?.wake ?? 0, wakeAt);
  await handle(null);
  expect(await runsBehind(own.pool)).toEqual([]);
  await wakeRun(own.pool, runId);
  expect(await runsBehind(own.pool)).toEqual([]);
  await own.pool.query("update runs set woken_at = now() - interval '2 seconds'");
  expect(await runsBehind(own.pool)).toEqual([runId]);
  await handle(Date.now() - 1000);
  expect(await runsBehind(own.pool)).toEqual([runId]);
  await handle(Date.now() + 60_000);
  expect(await runsBehind(own.pool)).toEqual([]);
  await act(own.pool, runId, admitAll(await snapshotOf(own.pool, runId)));
  await handle(null);
  await own.pool.query("update rollouts set lease_until = now() - interval '1 second'");
  expect(await runsBehind(own.pool)).toEqual([runId]);
  await own.drop();
});
