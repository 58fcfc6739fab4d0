/** Environments that a fixed-pool run keeps and resets, in whole runs on real parts. */
import { poolLedger } from "@rolldeck/db/reconcile/pools";
import { moveRunFrom } from "@rolldeck/db/runs/move-run";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Rig } from "../../testing/rig.ts";
import {
  bytes,
  call,
  done,
  doubled,
  recite,
  SandboxedScene,
  sandboxedConfig,
  shell,
} from "../../testing/sandboxed-scene.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const scene = await SandboxedScene.make();
const { runtime, ailment } = scene;
const signal = new AbortController().signal;

afterEach(() => void vi.restoreAllMocks());

const dispatcher = { name: "fixed-pool", bounds: { init: 4, run: 2, evaluate: 4 } } as const;
const config = (change: Parameters<typeof sandboxedConfig>[0] = {}) =>
  sandboxedConfig({ dispatcher, algorithm: { groupsPerStep: 4, groupSize: 2 }, ...change });
const environments = (runId: string) =>
  scene.rows(
    "select id, state, uses, reason, idle_since from sandboxes where run_id = $1 and environment order by created_at",
    runId,
  );
const total = (rows: readonly { uses: number }[]) => rows.reduce((sum, { uses }) => sum + uses, 0);

/** Asked all the while: more than so many were never there at once, by rows and by the runtime, and the books were right. */
function watch(rig: Rig, most: number) {
  const seen = { rows: 0, books: new Set<string>() };
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const there = await rig.value(
        "select count(*)::int from sandboxes where environment and state in ('opening', 'open')",
      );
      seen.rows = Math.max(seen.rows, Number(there));
      for (const row of await poolLedger(rig.database.pool)) seen.books.add(JSON.stringify(row));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    expect([...seen.books]).toEqual([]);
    expect(seen.rows).toBeLessThanOrEqual(most);
  };
}

/** Says whether anything of who was there before is left, and leaves something of its own. */
const dirty = `test ! -e /tmp/planted && ! pgrep sleep >/dev/null && cd /tmp && cat word word > two && mv two word;
echo mine > /tmp/planted; echo mine > /dev/shm/planted; (sleep 600 >/dev/null 2>&1 &); cd /`;
const dirtyAgent = { policy: recite(call(dirty), done) };

describe.skipIf(ailment !== null)("environments of a run", () => {
  test("are few, serve all rollouts clean, and go with the run", async () => {
    const rig = await scene.start(doubled(), dirtyAgent);
    const end = watch(rig, 2);
    const runId = await rig.launch(config({ budget: { steps: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    await end();
    expect((await scene.outcomes(runId)).map(({ reward, attempt }) => [reward, attempt])).toEqual(
      Array(16).fill([1, 1]),
    );
    const all = await environments(runId);
    expect(all).toHaveLength(2);
    expect(total(all)).toBe(16);
    await rig.until("both are closed", async () =>
      (await environments(runId)).every(({ state, reason }) => state === "closed" && reason === "its run is completed"),
    );
    await rig.until("nothing is left", async () => (await runtime.list(signal)).length === 0);
    expect(await rig.value("select sum(used)::int from pools")).toBe(0);
    const opened = (await rig.events(runId)).filter(
      (body) => body.type === "sandbox-opened" && body.purpose === "agent",
    );
    expect(opened.filter((body) => "place" in body)).toHaveLength(14);
    expect(await rig.value("select count(*)::int from sandbox_uses")).toBe(16);
  });

  test("are graded in place before the next rollout has them", async () => {
    const inPlace = doubled({
      gradeInPlace: true,
      collect: undefined,
      verify: async (_instance, _rollout, { sandboxes }) => {
        const own = await sandboxes?.agent();
        const found = own === undefined ? "" : await shell(own, "cat /tmp/word; cat /tmp/planted; pgrep -c sleep");
        const success = found === "word\nword\nmine\n1\n";
        return { reward: success ? 1 : 0, success, parts: {}, notes: null };
      },
    });
    const rig = await scene.start(inPlace, dirtyAgent);
    const end = watch(rig, 2);
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    await end();
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual(Array(8).fill(1));
    expect(await environments(runId)).toHaveLength(2);
  });

  test("with one sandbox in all the pool, give way to gradings", async () => {
    const rig = await scene.start(doubled(), dirtyAgent);
    await rig.database.pool.query("update pools set size = 1 where resource = 'sandbox'");
    const runId = await rig.launch(config({ algorithm: { groupsPerStep: 1, groupSize: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1]);
  });

  test("that can't be reset are closed, and new ones take their place", async () => {
    const rig = await scene.start(doubled(), dirtyAgent);
    const attach = runtime.attach.bind(runtime);
    let resets = 0;
    vi.spyOn(runtime, "attach").mockImplementation(async (id, stop) => {
      const sandbox = await attach(id, stop);
      const { reset } = sandbox;
      sandbox.reset = async (limit) => {
        if (++resets % 2 === 0) {
          await runtime.close(id, limit);
          throw new Error("not this time");
        }
        await reset?.call(sandbox, limit);
      };
      return sandbox;
    });
    const end = watch(rig, 2);
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    await end();
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual(Array(8).fill(1));
    const all = await environments(runId);
    expect(all.length).toBeGreaterThan(2);
    expect(all.map(({ reason }) => reason)).toContain("not this time");
  });

  test("of another kind than the rollout needs are closed for it", async () => {
    const kinds = doubled({
      sandboxFor: ({ index }) => ({
        image: null,
        resources: { cpus: null, memoryMb: null, pids: null, diskMb: null },
        network: { mode: "none" },
        workdir: null,
        environment: { KIND: String(index % 2) },
        services: [],
      }),
      setUp: async ({ index }, sandbox) => {
        const kind = await shell(sandbox, "echo $KIND");
        await sandbox.writeFile("/tmp/word", bytes(kind === `${index % 2}\n` ? "word\n" : "wrong\n"), {}, signal);
      },
    });
    const rig = await scene.start(kinds, dirtyAgent);
    const end = watch(rig, 2);
    const runId = await rig.launch(config());
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    await end();
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual(Array(8).fill(1));
  });

  test("pass from a worker that stops to another, and close when the run pauses", async () => {
    const rig = await scene.start(doubled(), { ...dirtyAgent, workers: 2 });
    const end = watch(rig, 2);
    const runId = await rig.launch(config());
    await rig.until("some have had one", async () => total(await environments(runId)) >= 4);
    await rig.workers[0]?.stop();
    await rig.until("others go on in them", async () => total(await environments(runId)) >= 6);
    await moveRunFrom(rig.database.pool, runId, { from: "running", to: "pausing", reason: null });
    rig.workers[1]?.context.requestReconcile(runId);
    await rig.until("it is paused or over", async () =>
      ["paused", "completed"].includes((await rig.status(runId)).status),
    );
    await rig.until("none is idle", async () => (await environments(runId)).every(({ idle_since }) => !idle_since));
    await end();
    expect((await environments(runId)).length).toBeLessThanOrEqual(2);
  });
});
