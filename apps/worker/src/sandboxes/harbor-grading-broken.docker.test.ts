/**
 * Agents that break the sandbox which their work is graded in: 0 that is told, where an untouched sandbox shows that it was they;
 * an error where it was not. Real containers.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Task, Verdict } from "@rolldeck/contracts/ports/task";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import { afterAll, describe, expect, test } from "vitest";
import { testDocker } from "../../../../packages/sandbox/testing/test-docker.ts";
import { harborSet } from "../../../../packages/tasks/testing/harbor/harbor-set.ts";
import { HarborStages } from "../../../../packages/tasks/testing/harbor/harbor-stages.ts";

const docker = testDocker();
const { signal } = new AbortController();

describe.skipIf(docker === null)("a Harbor task whose agent broke its sandbox", () => {
  const runtimes = new DockerRuntimes("harbor-broken");
  const { folder } = runtimes;
  const stages = new HarborStages(runtimes.docker, join(folder, "cache"));
  afterAll(() => runtimes.close());
  /** What comes of a rollout whose agent did this. */
  const outcome = async (task: Task, script: string): Promise<Verdict> => {
    const stage = await stages.begin(task);
    try {
      await stage.act(script);
      await stage.collect();
      return await stage.verify();
    } finally {
      await stage.end();
    }
  };
  /** A task of one folder that is graded by this script. */
  const taskOf = (name: string, testScript: string): Promise<Task> => {
    const files = {
      "task.toml":
        '[environment]\ndocker_image = "rolldeck-test-base:bookworm"\nnetwork_mode = "no-network"\nmemory_mb = 256\n[verifier]\ntimeout_sec = 30\n',
      "instruction.md": "x",
      "tests/test.sh": testScript,
    };
    for (const [path, text] of Object.entries(files)) {
      const file = join(folder, name, "a", path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    return stages.open(join(folder, name));
  };
  const broken = (why: RegExp) => ({
    reward: 0,
    success: false,
    flags: ["broke its sandbox"],
    notes: expect.stringMatching(why),
  });
  const noCommands = "rm -rf --no-preserve-root /bin /sbin /usr/bin /usr/sbin /usr/local 2>/dev/null";

  test.each<[string, string, RegExp]>([
    ["all programs away", noCommands, /no command can be run in it any more/],
    ["the loader of all programs away", "rm -rf /lib /lib64 /usr/lib", /no command can be run in it any more/],
    [
      "a shell that says nothing",
      "cp /bin/true /bin/mine && mv /bin/mine /bin/dash",
      /none in it: no command can be run in it any more: its shell says nothing/,
    ],
    ["what brings its tests in away", "rm -f /bin/tar /usr/bin/tar", /none in it/],
    [
      "what its tests need away",
      "rm -rf /usr/lib/python3*",
      /its tests write a reward in an untouched sandbox, and none in it: \/tests\/test\.sh exited with/,
    ],
  ])("%s is 0, and says so", async (_, script, why) => {
    expect(await outcome(await stages.open(harborSet, ["tally"]), `echo 42 > /app/total.txt; ${script}`)).toMatchObject(
      broken(why),
    );
  });

  test("a full disk is 0, and says so", async () => {
    const testScript = "set -e\nlog=$(mktemp)\nhead -c 100000 /dev/zero > $log\necho 1 > /logs/verifier/reward.txt\n";
    const task = await taskOf("full", testScript);
    expect(await outcome(task, "true")).toMatchObject({ reward: 1, success: true, flags: [] });
    expect(await outcome(task, "head -c 1G /dev/zero > /tmp/full")).toMatchObject(
      broken(/none in it: .*No space left on device/s),
    );
  });

  test("its processes and its shells ended, and everything asked to end, cost nothing: work earns its reward", async () => {
    const script = "echo 42 > /app/total.txt; kill -9 1; kill -TERM 1; kill -STOP 1; kill -9 -1; true";
    expect(await outcome(await stages.open(harborSet, ["tally"]), script)).toMatchObject({ reward: 1, success: true });
  });

  test("tests that write no reward anywhere are their own fault, whatever the agent did", async () => {
    const task = await taskOf("mute", "exit 3\n");
    await expect(outcome(task, "head -c 1G /dev/zero > /tmp/full")).rejects.toMatchObject({
      boundary: "verifier",
      code: "no_reward",
    });
  });

  test("a sandbox that went away is the machine's", async () => {
    const stage = await stages.begin(await stages.open(harborSet, ["tally"]));
    await runtimes.docker.close(stage.agent.id, signal);
    await expect(stage.verify()).rejects.toMatchObject({ boundary: "sandbox", code: "gone" });
    await expect(stage.verify()).rejects.toBeInstanceOf(BoundaryError);
  });

  test("at an early step it ends the agent's work: that step and those after it are 0", async () => {
    const stage = await stages.begin(await stages.open(harborSet, ["two-steps"]));
    await stage.act(`echo apple > /app/draft.txt; ${noCommands}`);
    expect(await stage.answer(0)).toBeNull();
    await stage.collect();
    expect(await stage.verify()).toMatchObject({ ...broken(/no command can be run/), parts: { draft: 0, publish: 0 } });
  });

  test.each([
    ["no program at all", noCommands],
    ["no tar", "rm -f /bin/tar /usr/bin/tar"],
  ])("with a verifier apart, work that can't be carried over is 0, and says so: %s", async (_, script) => {
    const task = await stages.open(harborSet, ["apart"]);
    expect(await outcome(task, `mkdir -p out; ${script}`)).toMatchObject(broken(/could not be read/));
  });
});
