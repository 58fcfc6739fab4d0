/**
 * What every bridge does, whoever trains: the trainer's own code on rollouts of ours, three steps, one kill. Only the trainer's
 * sharded update, weight sync and engines are replaced (infra/bridges/<bridge>/testing).
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Rig } from "../../../apps/worker/testing/rig.ts";
import { expectSampledByVersionBefore, expectWeightsChanged } from "../../real/trained-versions.ts";
import { runCommand } from "../../runner/run-command.ts";
import { type Bridge, type BridgeScene, startBridgeScene } from "./bridge-scene.ts";
import { bridgeEnv, bridgeFolder, type TrainedStep } from "./trainer-process.ts";

const [steps, groups, samples] = [3, 2, 4];
const settings = { steps, groups, samples, leaseS: 6, learningRate: 0.1 };

/** The step's rollouts that have settled, in the order of the trainer's batch. */
async function settledOf(rig: Rig, runId: string, step: number): Promise<{ id: string; reward: number }[]> {
  const { rows } = await rig.database.pool.query<{ id: string; reward: number }>(
    `select r.id, r.reward from rollouts r join groups g on g.id = r.group_id join steps s on s.id = r.step_id
     where r.run_id = $1 and s.step = $2 and r.state = 'settled' order by g.instance_index, r.sample`,
    [runId, step],
  );
  return rows;
}

/** The trainer had every rollout of its step in its order, with its reward, and trained what was sampled. */
async function expectTrainedOn(rig: Rig, runId: string, trained: TrainedStep): Promise<void> {
  const inOrder = await settledOf(rig, runId, trained.step);
  expect(trained.rollouts).toEqual(inOrder.map(({ id }) => id));
  expect(trained.rewards).toEqual(inOrder.map(({ reward }) => reward));
  expect(new Set(trained.rewards)).toEqual(new Set([0, 1]));
  expect(trained.rollouts).toHaveLength(groups * samples);
  expect(trained.gap).toBeLessThan(1e-3);
  expect(trained.gradNorm).toBeGreaterThan(1e-6);
  expect(trained.trained).toBeGreaterThan(groups * samples);
}

/** Registers the tests. @param open makes the bridge; called before the first test */
export function describeBridge(open: () => Bridge): void {
  let bridge: Bridge;
  let scene: BridgeScene;
  beforeAll(async () => {
    bridge = open();
    scene = await startBridgeScene(bridge);
  });
  afterAll(() => scene?.close());

  test.each(["driven", "bridge"])(
    "the %s package's own tests, with what the trainer's environment has",
    async (which) => {
      const end = await runCommand(bridge.python, ["-m", "unittest", "discover", "-s", "tests", "-t", "."], {
        cwd: bridgeFolder(which === "bridge" ? bridge.name : which),
        env: bridgeEnv(bridge.name, scene.folder),
        limitMs: 280_000,
        keepOutput: true,
      });
      expect(end.output).toMatch(/Ran [1-9]\d* tests in .*\n\nOK\n/);
      expect(end.code).toBe(0);
    },
  );

  test("three steps; a trainer killed in the second pauses the run, its restart gets the same rollouts, none twice", async () => {
    const { rig, policy } = scene;
    policy.slow = { version: 1, delayMs: 8_000, quick: 3 };
    const runId = await scene.launch(steps);
    const first = scene.startTrainer(runId, settings);
    const trainedFirst = async (): Promise<boolean> => {
      if (first.steps.length === 0 && (await Promise.race([first.ended, null])) !== null) throw new Error(first.said());
      return first.steps.length > 0;
    };
    await rig.until("the first step is trained", trainedFirst, 180_000);
    await rig.until("some of the second step are settled", async () => (await settledOf(rig, runId, 2)).length >= 1);
    await first.kill();
    const before = (await settledOf(rig, runId, 2)).map(({ id }) => id);
    expect(before.length).toBeLessThan(groups * samples);

    await rig.until("the run pauses", async () => (await rig.status(runId)).status === "paused");
    expect((await rig.status(runId)).reason).toMatch(/^the trainer's lease/);
    policy.slow = null;
    const second = scene.startTrainer(runId, settings);
    expect(await second.ended, second.said()).toBe(0);
    expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");

    const trained = [...first.steps, ...second.steps];
    expect(trained.map(({ step }) => step)).toEqual([1, 2, 3]);
    for (const each of trained) await expectTrainedOn(rig, runId, each);
    expect(new Set(trained.flatMap(({ rollouts }) => rollouts)).size).toBe(steps * groups * samples);
    expect(trained[1]?.rollouts).toEqual(expect.arrayContaining(before));
    const countOf = (table: string) => rig.value(`select count(*)::int from ${table} where run_id = $1`, [runId]);
    expect(await countOf("rollouts")).toBe(steps * groups * samples);
    expect(await countOf("batch_requests")).toBe(steps);
    // What had settled was not done anew.
    const attempts = "select max(attempt) from rollouts where run_id = $1 and id = any($2)";
    expect(await rig.value(attempts, [runId, before])).toBe(1);
    await expectSampledByVersionBefore(rig.database.pool, runId, steps);
    expectWeightsChanged([0, 1, 2, 3].map(scene.weightsOf));
  }, 400_000);
}
