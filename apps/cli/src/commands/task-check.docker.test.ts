/** The public task shapes, checked in real containers as `rolldeck task check` does it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { checkTask } from "@rolldeck/tasks/check/check-task";
import { makeHarbor } from "@rolldeck/tasks/harbor/task";
import { afterAll, describe, expect, test } from "vitest";
import { testDocker } from "../../../../packages/sandbox/testing/test-docker.ts";
import { harborSet } from "../../../../packages/tasks/testing/harbor/harbor-set.ts";

const docker = testDocker();

describe.skipIf(docker === null)("task check", () => {
  const folder = mkdtempSync(join(tmpdir(), "task-check-"));
  const runtimes = new SandboxRuntimes({
    settings: parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: docker?.socket ?? "" }, folder),
    deployment: `task-check-${process.pid}`,
    stateFolder: folder,
    onTrouble: (message, error) => console.error(message, error),
  });
  afterAll(async () => {
    await runtimes.disconnect();
    rmSync(folder, { recursive: true, force: true });
  });
  const harbor = makeHarbor({ variables: () => ({}), cache: () => join(folder, "cache") });
  const check = async (dataset: string, options: Record<string, string | boolean | string[]>, repeat = 1) => {
    const task = await harbor.open({ dataset, options: { heldOutEvery: 0, ...options } });
    return checkTask({
      task,
      runtime: runtimes.get("docker"),
      repeat,
      only: [],
      concurrency: 2,
      signal: new AbortController().signal,
      now: () => performance.now(),
      onProgress: () => {},
      onChecked: () => {},
    });
  };

  test("every public shape is solved by its solution, and not by doing nothing", async () => {
    const report = await check(harborSet, { exclude: ["beside"] }, 2);
    expect(report.instances.map(({ state, reason }) => [state, reason])).toEqual(
      report.instances.map(() => ["good", null]),
    );
    expect(report.instances.map(({ instanceId }) => instanceId.slice(0, -9))).toEqual([
      "apart",
      "old-keys",
      "tally",
      "two-steps",
    ]);
    expect(report.instances.map(({ oracle, noOp }) => [oracle?.succeeded, noOp?.succeeded, noOp?.rewards])).toEqual(
      report.instances.map(() => [2, 0, [0, 0]]),
    );
    expect([report.good, report.bad]).toEqual([4, 0]);
    expect(await runtimes.get("docker").list(new AbortController().signal)).toEqual([]);
  });
});
