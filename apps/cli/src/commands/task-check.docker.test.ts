/** The public task shapes, checked in real containers as `rolldeck task check` does it. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import type { CheckReport } from "@rolldeck/tasks/check/check-report";
import { checkTask } from "@rolldeck/tasks/check/check-task";
import { makeHarbor } from "@rolldeck/tasks/harbor/task";
import { afterAll, describe, expect, test } from "vitest";
import { testDocker } from "../../../../packages/sandbox/testing/test-docker.ts";
import { harborSet } from "../../../../packages/tasks/testing/harbor/harbor-set.ts";

const docker = testDocker();

describe.skipIf(docker === null)("task check", () => {
  const runtimes = new DockerRuntimes("task-check");
  const { folder } = runtimes;
  afterAll(() => runtimes.close());
  const harbor = makeHarbor({ variables: () => ({}), cache: () => join(folder, "cache") });
  const check = async (dataset: string, options: Record<string, string | boolean | string[]>, repeat = 1) => {
    const task = await harbor.open({ dataset, options: { heldOutEvery: 0, ...options } });
    return checkTask({
      task,
      runtime: runtimes.docker,
      repeat,
      only: [],
      concurrency: 2,
      signal: new AbortController().signal,
      now: () => performance.now(),
      onProgress: () => {},
      onChecked: () => {},
    });
  };

  test.each(["apart", "beside", "old-keys", "tally", "two-steps"])(
    "%s is solved by its solution, and not by doing nothing",
    async (name) => {
      const report = await check(harborSet, { include: [name] });
      expect(report.instances).toMatchObject([
        { state: "good", reason: null, oracle: { succeeded: 1, rewards: [1] }, noOp: { succeeded: 0, rewards: [0] } },
      ]);
      expect(report.instances[0]?.instanceId.slice(0, -9)).toBe(name);
      expect([report.good, report.bad]).toEqual([1, 0]);
      expect(await runtimes.docker.list(new AbortController().signal)).toEqual([]);
    },
  );

  describe("tasks that can't be trusted", () => {
    const bad = join(folder, "bad");
    const states = ({ instances }: CheckReport) =>
      instances.map(({ instanceId, state, reason }) => [instanceId.slice(0, -9), state, reason]);
    const task = (name: string, test: string, solution: string | null) => {
      const files = {
        "task.toml": '[environment]\ndocker_image = "rolldeck-test-base:bookworm"\nnetwork_mode = "no-network"\n',
        "instruction.md": "x",
        "tests/test.sh": test,
        ...(solution === null ? {} : { "solution/solve.sh": solution }),
      };
      for (const [file, text] of Object.entries(files)) {
        mkdirSync(join(bad, name, dirname(file)), { recursive: true });
        writeFileSync(join(bad, name, file), text);
      }
    };
    const reward = "/logs/verifier/reward.txt";
    task("easy", `echo 1 > ${reward}`, ":");
    task("wrong", `echo 0 > ${reward}`, ":");
    task("silent", "echo no reward", ":");
    task("unsolved", `echo 0 > ${reward}`, null);
    // Solved, and its tests pass at every other run.
    task(
      "flaky",
      `[ -f /solved ] && n=$(cat /n 2>/dev/null || echo 0); echo $((n + 1)) > /n; echo $((\${n:-1} % 2 == 0)) > ${reward}`,
      "touch /solved",
    );

    test("are bad, each for its own reason", async () => {
      const report = await check(bad, { exclude: ["flaky"] });
      expect(states(report)).toEqual([
        ["easy", "no-op passed", "doing nothing succeeds (reward 1)"],
        ["silent", "broken", "verifier, no_reward: /tests/test.sh exited with 0 and wrote no reward: no reward"],
        ["unsolved", "no solution", "it brings no solution"],
        ["wrong", "oracle failed", "the author's solution does not succeed (reward 0)"],
      ]);
      expect([report.good, report.unsolved, report.bad]).toEqual([0, 1, 3]);
    });

    test("or pass at times only, which is said", async () => {
      expect(states(await check(bad, { include: ["flaky"] }, 2))).toEqual([
        ["flaky", "flaky", "the author's solution: 1 of 2 gradings succeeded"],
      ]);
    });
  });
});
