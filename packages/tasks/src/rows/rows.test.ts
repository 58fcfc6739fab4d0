import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openDataset } from "./open-dataset.ts";
import { openRowFile } from "./row-file.ts";

const home = mkdtempSync(join(tmpdir(), "rows-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const anyRow = z.looseObject({ question: z.string() });
let files = 0;
const write = (content: string | Uint8Array): string => {
  const path = join(home, `rows-${files++}.jsonl`);
  writeFileSync(path, content);
  return path;
};
const lines = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

describe("a row file", () => {
  test("gives every row verbatim: no key added, no type changed, no text mended", async () => {
    const row = fc.record({ question: fc.string({ unit: "binary" }), more: fc.jsonValue({ maxDepth: 3 }) });
    const separator = fc.constantFrom("\n", "\r\n", "\n\n", "\n \t\n");
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 6 }), separator, fc.boolean(), async (rows, between, ends) => {
        const text = rows.map((each) => JSON.stringify(each)).join(between) + (ends ? between : "");
        const file = await openRowFile(write(text), anyRow);
        expect(file.count).toBe(rows.length);
        // JSON has no −0 and the like: what the text says is what counts.
        rows.forEach((each, index) => {
          expect(file.row(index)).toEqual(JSON.parse(JSON.stringify(each)));
        });
      }),
      { numRuns: 60 },
    );
  });

  test("rows longer than a read's chunk are whole", async () => {
    const rows = [3_000_000, 1, 1_048_575, 1_048_576].map((length) => ({ question: "é".repeat(length / 2) }));
    const file = await openRowFile(write(lines(rows)), anyRow);
    expect(rows.map((_, index) => file.row(index).question.length)).toEqual(
      rows.map(({ question }) => question.length),
    );
  });

  test.each([
    ['{"question":"a"}\n\n{"question":1}\n', /line 3: question: /],
    ['{"question":"a"}\nnull\n', /line 2: /],
    ['{"question":"a"}\n{"question":"b"', /line 2: not JSON/],
    [Buffer.from([0x22, 0xff, 0x22]), /line 1: not JSON in UTF-8/],
  ])("%j is refused by line", async (content, message) => {
    await expect(openRowFile(write(content), anyRow)).rejects.toThrow(message);
    await expect(openRowFile(write(content), anyRow)).rejects.toMatchObject({ issues: [{ path: "dataset" }] });
  });

  test("a row past the end is none; a file that changed gives none either", async () => {
    const path = write(lines([{ question: "a" }, { question: "b" }]));
    const file = await openRowFile(path, anyRow);
    expect(() => file.row(2)).toThrow(RangeError);
    expect(() => file.row(-1)).toThrow(RangeError);
    writeFileSync(path, lines([{ question: "longer" }, { question: "b" }]));
    expect(() => file.row(0)).toThrow(/changed after it was opened/);
  });
});

describe("splits", () => {
  test("of one file: every row is in exactly one split, in order", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 25 }), fc.integer({ min: 0, max: 7 }), async (count, every) => {
        const rows = Array.from({ length: count }, (_, n) => ({ question: String(n) }));
        const dataset = await openDataset(write(lines(rows)), anyRow, every);
        const of = (split: "train" | "evaluate") =>
          Array.from({ length: dataset.size(split) }, (_, index) => Number(dataset.row(split, index).question));
        const heldOut = of("evaluate");
        expect(heldOut).toEqual(every === 0 ? [] : rows.map((_, n) => n).filter((n) => (n + 1) % every === 0));
        expect(of("train")).toEqual(rows.map((_, n) => n).filter((n) => !heldOut.includes(n)));
        expect(() => dataset.row("train", dataset.size("train"))).toThrow(RangeError);
        expect(() => dataset.row("evaluate", dataset.size("evaluate"))).toThrow(RangeError);
      }),
      { numRuns: 60 },
    );
  });

  test("of a folder: its two files; a missing one is an empty split", async () => {
    const folder = join(home, "set");
    await mkdir(folder);
    await expect(openDataset(folder, anyRow, 10)).rejects.toThrow(/neither train.jsonl nor evaluate.jsonl/);
    writeFileSync(join(folder, "evaluate.jsonl"), lines([{ question: "e" }]));
    const evaluateOnly = await openDataset(folder, anyRow, 10);
    expect([evaluateOnly.size("train"), evaluateOnly.size("evaluate")]).toEqual([0, 1]);
    expect(() => evaluateOnly.row("train", 0)).toThrow(RangeError);
    writeFileSync(join(folder, "train.jsonl"), lines([{ question: "t" }, { question: "u" }]));
    const both = await openDataset(folder, anyRow, 10);
    expect([both.size("train"), both.row("train", 1).question, both.row("evaluate", 0).question]).toEqual([
      2,
      "u",
      "e",
    ]);
  });

  test("a file of a folder that is a link out of it is refused, and nothing of it is told", async () => {
    const folder = join(home, "linked");
    await mkdir(folder);
    const outside = write("not ours: a password");
    symlinkSync(outside, join(folder, "train.jsonl"));
    await expect(openDataset(folder, anyRow, 10)).rejects.toMatchObject({
      issues: [{ path: "dataset", message: "train.jsonl leads out of the data set's folder" }],
    });
    rmSync(join(folder, "train.jsonl"));
    writeFileSync(join(folder, "rows.jsonl"), lines([{ question: "q" }]));
    symlinkSync("rows.jsonl", join(folder, "train.jsonl"));
    expect((await openDataset(folder, anyRow, 10)).size("train")).toBe(1);
  });

  test("a row is named by its place and by what it says", async () => {
    const names = async (questions: readonly string[], every = 2) => {
      const dataset = await openDataset(write(lines(questions.map((question) => ({ question })))), anyRow, every);
      return (["train", "evaluate"] as const).flatMap((split) =>
        Array.from({ length: dataset.size(split) }, (_, index) => dataset.instanceId(split, index)),
      );
    };
    const before = await names(["a", "b", "c", "d"]);
    expect(before.map((name) => name.slice(0, -9))).toEqual(["train-0", "train-1", "evaluate-0", "evaluate-1"]);
    expect(await names(["a", "b", "c", "d"])).toEqual(before);
    expect((await names(["a", "b", "C", "d"])).map((name, at) => name === before[at])).toEqual([
      true,
      false,
      true,
      true,
    ]);
    // A row put in front moves all others to other places.
    expect((await names(["z", "a", "b", "c"])).some((name) => before.includes(name))).toBe(false);
    expect(new Set(await names(["a", "a", "a", "a"])).size).toBe(4);
  });
});
