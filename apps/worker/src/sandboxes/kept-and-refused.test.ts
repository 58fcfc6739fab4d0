/** Sandboxes that stay for people, and those that can't be had, in whole runs on real parts. */
import type { Task } from "@rolldeck/contracts/ports/task";
import { readRun } from "@rolldeck/db/reads/read-run";
import { describe, expect, test, vi } from "vitest";
import {
  bytes,
  doubled,
  place,
  SandboxedScene,
  sandboxedConfig,
  sandboxTools,
  shell,
} from "../../testing/sandboxed-scene.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const scene = await SandboxedScene.make();
const { runtime, ailment } = scene;
const signal = new AbortController().signal;

describe.skipIf(ailment !== null)("sandboxes of runs", () => {
  test("kept to be looked into where the run asks for it, and closed when let go", async () => {
    const rig = await scene.start(doubled());
    const runId = await rig.launch(sandboxedConfig({ sandbox: { keep: "always", keepMinutes: 5 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const kept = () => scene.rows("select id from sandboxes where run_id = $1 and state = 'kept'", runId);
    await rig.until("the agents' sandboxes are kept", async () => (await kept()).length === 2);
    const [{ id }] = await kept();
    const sandbox = await runtime.attach(id, signal);
    expect(await shell(sandbox, "cat /tmp/word")).toBe("word\nword\n");
    await rig.database.pool.query("update sandboxes set keep_until = now() where state = 'kept'");
    await rig.until(
      "they are closed",
      async () => (await kept()).length === 0 && (await runtime.list(signal)).length === 0,
    );
  });

  test("kept ones count in the pool: the last one is left for rollouts, which all come to their end", async () => {
    const rig = await scene.start(doubled());
    await rig.database.pool.query("update pools set size = 2 where resource = 'sandbox'");
    const keep = { keep: "always", keepMinutes: 5 } as const;
    const runId = await rig.launch(sandboxedConfig({ sandbox: keep, algorithm: { groupsPerStep: 2, groupSize: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    expect((await scene.outcomes(runId)).map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
    const ofAgents = (await scene.sandboxesIn(runId)).filter(({ purpose }) => purpose === "agent");
    expect(ofAgents.map(({ state }) => state).sort()).toEqual(["closed", "closed", "closed", "kept"]);
    const why = ofAgents.filter(({ state }) => state === "closed").map(({ reason }) => reason);
    expect(new Set(why)).toEqual(
      new Set([
        "its agent is done; not kept: 1 of 2 sandboxes are kept already, and at least one is left for rollouts",
      ]),
    );
  });

  test("of rollouts without success alone: the others' go as soon as they are graded", async () => {
    // Every other one has another word to double.
    let begun = 0;
    const other = doubled({
      setUp: async (instance, sandbox) => {
        await doubled().setUp?.(instance, sandbox, signal);
        if (begun++ % 2 === 0) await sandbox.writeFile("/tmp/word", bytes("other\n"), {}, signal);
      },
    });
    const rig = await scene.start(other);
    const keep = { keep: "failed", keepMinutes: 5 } as const;
    const runId = await rig.launch(sandboxedConfig({ sandbox: keep, algorithm: { groupsPerStep: 4, groupSize: 2 } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
    const states = () =>
      scene.rows(
        `select s.state, r.success from sandboxes s join rollouts r on r.id = s.rollout_id
         where s.run_id = $1 and s.purpose = 'agent' group by s.id, s.state, r.success`,
        runId,
      );
    await rig.until("those of successes are closed", async () =>
      (await states()).every(({ state, success }) => (state === "closed") === success),
    );
    expect(new Set((await states()).map(({ state }) => state))).toEqual(new Set(["closed", "kept"]));
  });

  test.each(["agents'", "grading"])(
    "%s sandboxes that can't be had at all are asked for once, and the page says so once",
    async (whose) => {
      const image = { kind: "name", name: "registry.example/none:1" } as const;
      const wanted = { ...place, image };
      const change: Partial<Task> =
        whose === "grading"
          ? {
              verify: async (_instance, _rollout, { sandboxes }) => {
                await sandboxes?.open(wanted);
                return { reward: 1, success: true, parts: {}, notes: null };
              },
            }
          : { sandboxFor: () => wanted };
      const rig = await scene.start(doubled(change));
      const runId = await rig.launch(sandboxedConfig());
      expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
      const settled = await scene.rows(
        "select outcome, ending, attempt, reward, reason, evaluate_failures from rollouts where run_id = $1",
        runId,
      );
      expect(settled.length).toBeGreaterThan(0);
      for (const row of settled) {
        expect(row).toMatchObject({ outcome: "failed", ending: "sandbox_refused", attempt: 1, reward: null });
        expect(row.evaluate_failures).toBe(0);
        expect(row.reason).toContain(image.name);
      }
      const ended = await rig.status(runId);
      expect(ended.reason).toMatch(/^no sandbox could be had for any rollout of step 1: /);
      expect(ended.reason).toContain(image.name);
      expect(await scene.rows("select step from steps where run_id = $1", runId)).toEqual([{ step: 1 }]);
      const { sandboxRefusal } = await readRun(rig.database.pool, runId);
      expect(sandboxRefusal).toMatchObject({ purpose: "train", rollouts: 2, alike: 2 });
      expect(sandboxRefusal?.reason).toContain(image.name);
      expect(await rig.value("select sum(used)::int from pools")).toBe(0);
      expect(await runtime.list(signal)).toEqual([]);
    },
  );

  test("a run whose sandboxes can't be opened here says so before anything starts", async () => {
    const rig = await scene.startWith({ parts: { tasks: { doubled: doubled() }, tools: sandboxTools } });
    const runId = await rig.launch(sandboxedConfig({ sandbox: { runtime: "remote" } }));
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("failed");
    expect(await rig.status(runId)).toMatchObject({ reason: expect.stringContaining("no remote sandboxes") });
  });
});
