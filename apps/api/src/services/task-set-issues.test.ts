import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import { tasks } from "@rolldeck/tasks/registry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCatalogue } from "./catalogue.ts";
import { checkConfig } from "./check-config.ts";
import { sandboxFacts } from "./sandbox-issues.ts";
import { withOpenedTasks } from "./task-set-issues.ts";

const models = new URL("../../../../infra/models", import.meta.url).pathname;
const home = mkdtempSync(join(tmpdir(), "rolldeck-sets-"));
const row = '{"question":"q","documents":["d"],"answers":["a"]}\n';
beforeAll(() => {
  writeFileSync(join(home, "rows.jsonl"), row.repeat(20));
  writeFileSync(join(home, "bad.jsonl"), `${row}{"question":"q","answers":["a"]}\n`);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const opened = new OpenedTasks({ tasks, dataRoots: [home] });
const check = async (set: object, more: object = {}, hasJudge = false) => {
  const catalogue = await createCatalogue({ models: [models], templates: [] }).forCheck();
  const config = { taskSets: [{ name: "key-chain" }, set], agent: { maxContextTokens: 8192 }, ...more };
  const sandboxes = sandboxFacts(parseSandboxSettings({}, home), () => true);
  return withOpenedTasks(checkConfig(config, catalogue), opened, { hasJudge, sandboxes });
};

describe("a config's task sets, opened before launch", () => {
  test("one that fits passes, with its data set and options", async () => {
    const set = { name: "memory", dataset: "rows.jsonl", options: { maxChunkTokens: 2000 }, size: 5 };
    const reply = await check(set, { evaluation: { samples: 2 } });
    expect(reply).toMatchObject({ ok: true, issues: [], warnings: [] });
    expect(reply.config?.taskSets[1]).toMatchObject(set);
  });

  test.each([
    [{ name: "memory" }, "taskSets[1].dataset", /needs a data set/],
    [{ name: "memory", dataset: "none.jsonl" }, "taskSets[1].dataset", /no data set "none.jsonl"/],
    [{ name: "memory", dataset: "bad.jsonl" }, "taskSets[1].dataset", /bad.jsonl line 2: documents: /],
    [{ name: "memory", dataset: "rows.jsonl", options: { chunk: 1 } }, "taskSets[1].options.chunk", /no such option/],
    [
      { name: "memory", dataset: "rows.jsonl", options: { heldOutEvery: 1 } },
      "taskSets[1].dataset",
      /no training rows/,
    ],
    [{ name: "key-chain", options: { keys: 3 } }, "taskSets[1].options.keys", /has no options/],
  ])("%j is refused at %s", async (set, path, message) => {
    const reply = await check(set);
    expect(reply).toMatchObject({ ok: false, config: null, estimate: null });
    expect(reply.issues).toEqual([expect.objectContaining({ path, message: expect.stringMatching(message) })]);
  });

  test("a verifier that asks a judge needs one", async () => {
    const set = { name: "memory", dataset: "rows.jsonl", options: { verifier: "judge" } };
    const refused = [{ path: "taskSets[1].options.verifier", message: "this server has no judge" }];
    expect((await check(set)).issues).toMatchObject(refused);
    expect((await check(set, {}, true)).ok).toBe(true);
  });

  test("held-out rows are needed where an evaluation samples them", async () => {
    const set = { name: "memory", dataset: "rows.jsonl", options: { heldOutEvery: 0 } };
    expect((await check(set)).ok).toBe(true);
    expect((await check(set, { evaluation: { samples: 2 } })).issues[0]?.message).toMatch(/no held-out rows/);
  });
});
