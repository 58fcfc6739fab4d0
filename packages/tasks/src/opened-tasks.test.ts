import { mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Task } from "@rolldeck/contracts/ports/task";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { keyChain } from "./key-chain/task.ts";
import { OpenedTasks } from "./opened-tasks.ts";
import { parseOptions } from "./parse-options.ts";
import { openDataset } from "./rows/open-dataset.ts";

const home = mkdtempSync(join(tmpdir(), "opened-"));
const root = join(home, "root");
beforeAll(async () => {
  await mkdir(join(root, "inner"), { recursive: true });
  writeFileSync(join(home, "secret.jsonl"), '{"q":"x"}\n');
  writeFileSync(join(root, "inner", "rows.jsonl"), '{"q":"x"}\n{"q":"y"}\n');
  symlinkSync(join(home, "secret.jsonl"), join(root, "link.jsonl"));
  symlinkSync(join(root, "inner"), join(root, "alias"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

let opens = 0;
const Options = z.strictObject({ letters: z.int().min(1).default(3) });
const rowTask: Task = {
  ...keyChain,
  name: "rows",
  open: async ({ dataset, options }) => {
    opens += 1;
    const { letters } = parseOptions(Options, options);
    const rows = dataset === null ? null : await openDataset(dataset, z.object({ q: z.string() }), 0);
    return { ...rowTask, description: `${letters}`, size: (split) => rows?.size(split) ?? null };
  },
};
const opened = new OpenedTasks({
  tasks: { "key-chain": keyChain, rows: rowTask },
  dataRoots: [join(home, "none"), root],
});
const config = (...taskSets: { name: string; dataset?: string; options?: Record<string, number> }[]) =>
  RunConfig.parse({ taskSets });

describe("opening a task set", () => {
  test("a task over a data set and options; the one without either is itself", async () => {
    const run = config({ name: "rows", dataset: "inner/rows.jsonl", options: { letters: 5 } }, { name: "key-chain" });
    const [rows, chain] = await opened.all(run);
    expect([rows?.size("train"), rows?.description]).toEqual([2, "5"]);
    expect(chain).toBe(keyChain);
  });

  test("equal sets share one, other options make another, a changed file is opened anew", async () => {
    const set = { name: "rows", dataset: "inner/rows.jsonl", options: {} };
    const first = await opened.open(set);
    const before = opens;
    expect(await opened.open({ ...set })).toBe(first);
    expect(await opened.open({ ...set, dataset: "alias/rows.jsonl" })).toBe(first);
    expect(opens).toBe(before);
    expect(await opened.open({ ...set, options: { letters: 4 } })).not.toBe(first);
    utimesSync(join(root, "inner", "rows.jsonl"), 1, 1);
    expect(await opened.open(set)).not.toBe(first);
  });

  test("a file that was changed in place, folders below the data set's own, is seen at the next look", async () => {
    const folder = join(root, "set");
    await mkdir(join(folder, "deep", "tests"), { recursive: true });
    writeFileSync(join(folder, "train.jsonl"), '{"q":"x"}\n');
    writeFileSync(join(folder, "deep", "tests", "test.sh"), "true");
    let at = 0;
    const looking = new OpenedTasks({ tasks: { rows: rowTask }, dataRoots: [root], now: () => at });
    const set = { name: "rows", dataset: "set", options: {} };
    const first = await looking.open(set);
    writeFileSync(join(folder, "deep", "tests", "test.sh"), "false");
    at = 1001;
    const second = await looking.open(set);
    expect(second).not.toBe(first);
    at = 5000;
    expect(await looking.open(set)).toBe(second);
  });

  test.each([
    [{ name: "rows", options: { leters: 2 } }, "taskSets[1].options.leters", /no such option/],
    [{ name: "rows", options: { letters: 0 } }, "taskSets[1].options.letters", /expected number to be >=1/],
    [{ name: "rows", dataset: "nowhere.jsonl" }, "taskSets[1].dataset", /no data set "nowhere.jsonl"/],
    [{ name: "rows", dataset: "link.jsonl" }, "taskSets[1].dataset", /leads out of the data roots/],
    [{ name: "key-chain", dataset: "inner/rows.jsonl" }, "taskSets[1].dataset", /makes its own instances/],
    [{ name: "key-chain", options: { letters: 2 } }, "taskSets[1].options.letters", /has no options/],
  ])("%j is refused at %s", async (set, path, message) => {
    const refusal = await opened.all(config({ name: "key-chain" }, set)).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: "InputError", issues: [{ path, message: expect.stringMatching(message) }] });
  });

  test.each(["../secret.jsonl", "/etc/passwd", "inner/../../secret.jsonl", "a\0b", "inner//rows.jsonl", ""])(
    "%j is no name of a data set",
    async (dataset) => {
      await expect(opened.open({ name: "rows", dataset, options: {} })).rejects.toMatchObject({
        issues: [{ path: "dataset" }],
      });
    },
  );

  test("what failed is tried again: the file may be put right", async () => {
    writeFileSync(join(root, "late.jsonl"), '{"q":1}\n');
    const set = { name: "rows", dataset: "late.jsonl", options: {} };
    await expect(opened.open(set)).rejects.toThrow(/line 1: q: /);
    writeFileSync(join(root, "late.jsonl"), '{"q":"1"}\n');
    expect((await opened.open(set)).size("train")).toBe(1);
  });

  test("an unknown task is not found, whatever it is called", async () => {
    for (const name of ["nope", "constructor"]) {
      await expect(opened.open({ name, dataset: null, options: {} })).rejects.toMatchObject({ name: "NotFoundError" });
    }
  });
});
