/** A rollout's instance is the one it was planned with, or none. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { tasks } from "@rolldeck/tasks/registry";
import { afterAll, expect, test } from "vitest";
import { taskOf } from "./rollout-task.ts";

const home = mkdtempSync(join(tmpdir(), "rollout-task-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const write = (answers: readonly string[]) =>
  writeFileSync(
    join(home, "rows.jsonl"),
    answers.map((answer) => `${JSON.stringify({ question: "Which?", context: "c", answers: [answer] })}\n`).join(""),
  );

test("a data set that changes under a run gives no other question's answers to a rollout", async () => {
  const opened = new OpenedTasks({ tasks, dataRoots: [home] });
  const config = RunConfig.parse({
    taskSets: [{ name: "memory", dataset: "rows.jsonl", options: { heldOutEvery: 0 } }],
  });
  const planned = (instanceIndex: number) => ({ config, taskSet: 0, split: "train" as const, instanceIndex });
  write(["seven", "eight"]);
  const names = await Promise.all([0, 1].map(async (at) => (await taskOf(opened, planned(at))).instance.instanceId));
  const graded = (at: number) => taskOf(opened, { ...planned(at), instanceId: names[at] });
  expect((await graded(1)).instance.state).toMatchObject({ answers: ["eight"] });
  write(["seven", "nine and more"]);
  // The row that is the same is still there; the other one is not.
  expect((await graded(0)).instance.state).toMatchObject({ answers: ["seven"] });
  await expect(graded(1)).rejects.toMatchObject({ boundary: "infrastructure", code: "instance_changed" });
});
