import { mkdirSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { type ColumnSource, parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openDataset } from "./open-dataset.ts";
import { openRowFile } from "./row-file.ts";

const home = mkdtempSync(join(tmpdir(), "parquet-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const anyRow = z.looseObject({});
let files = 0;
function write(columnData: ColumnSource[], options: { rowGroupSize?: number[]; name?: string } = {}): string {
  const path = join(home, options.name ?? `rows-${files++}.parquet`);
  const rowGroupSize = options.rowGroupSize ?? [2];
  writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize })));
  return path;
}
const strings = (name: string, data: readonly (string | null)[]): ColumnSource => ({
  name,
  data: [...data],
  type: "STRING",
});

describe("rows of a Parquet file", () => {
  test("are verbatim, over row groups and in any order", async () => {
    const text = fc.string({ unit: "grapheme" });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, fc.option(text)), { minLength: 1, maxLength: 7 }), async (rows) => {
        const question = strings(
          "question",
          rows.map(([it]) => it),
        );
        const note = strings(
          "note",
          rows.map(([, it]) => it),
        );
        const file = await openRowFile(write([question, note]), anyRow);
        expect(file.count).toBe(rows.length);
        for (let index = rows.length - 1; index >= 0; index--) {
          const [wanted, noted] = rows[index] ?? ["", null];
          expect(file.row(index)).toEqual({ question: wanted, note: noted });
        }
      }),
      { numRuns: 30 },
    );
  });

  test("lists are lists, 64-bit numbers are numbers while they can be, times are ISO 8601", async () => {
    const path = write([
      { name: "tests", data: [["a::b", "a::c[1 - 2]"], []], type: "JSON" },
      { name: "size", data: [7n, 2n ** 60n], type: "INT64" },
      { name: "at", data: [new Date(0), new Date(1e12)], type: "TIMESTAMP" },
    ]);
    const file = await openRowFile(path, anyRow);
    expect([file.row(0), file.row(1)]).toEqual([
      { tests: ["a::b", "a::c[1 - 2]"], size: 7, at: "1970-01-01T00:00:00.000Z" },
      { tests: [], size: "1152921504606846976", at: "2001-09-09T01:46:40.000Z" },
    ]);
  });

  test("only the columns that are asked for are read", async () => {
    const path = write([strings("question", ["a", "b"]), strings("huge", ["x".repeat(100_000), "y"])]);
    const file = await openRowFile(path, anyRow, { columns: ["question", "absent"] });
    expect(file.row(0)).toEqual({ question: "a" });
  });

  test("a row that does not fit is told by its number, a broken file as broken", async () => {
    const path = write([strings("question", ["a", null, "c"])]);
    const schema = z.looseObject({ question: z.string() });
    await expect(openRowFile(path, schema)).rejects.toMatchObject({
      issues: [{ path: "dataset", message: expect.stringMatching(/rows-\d+\.parquet row 1: question: /) }],
    });
    truncateSync(path, 60);
    await expect(openRowFile(path, anyRow)).rejects.toMatchObject({
      issues: [{ path: "dataset", message: expect.stringContaining("not a readable Parquet file") }],
    });
  });

  test("a file that changed gives no rows", async () => {
    const path = write([strings("question", ["a", "b", "c"])]);
    const file = await openRowFile(path, anyRow);
    expect(file.row(2)).toEqual({ question: "c" });
    utimesSync(path, new Date(0), new Date(0));
    expect(() => file.row(2)).toThrow(/changed after it was opened/);
  });

  test("the same rows are marked alike whichever file they lie in, and differ when they differ", async () => {
    const marks = async (questions: string[]) => {
      const file = await openRowFile(write([strings("question", questions)]), anyRow);
      return questions.map((_, index) => file.mark(index));
    };
    const [first, second] = await marks(["a", "b"]);
    expect(await marks(["b", "a"])).toEqual([second, first]);
    expect(first).not.toBe(second);
  });
});

test("a folder of parts is one split after the other; names stand in front", async () => {
  const folder = join(home, "folder");
  mkdirSync(folder);
  write([strings("id", ["a/1", "a/2"])], { name: "folder/train-00000-of-00002.parquet" });
  write([strings("id", ["a/3"])], { name: "folder/train-00001-of-00002.parquet" });
  write([strings("id", ["b/1"])], { name: "folder/test-00000-of-00001.parquet" });
  writeFileSync(join(folder, "train-notes.txt"), "no rows");
  const schema = z.object({ id: z.string() });
  const rows = await openDataset(folder, schema, 10, { nameOf: ({ id }) => id });
  expect([rows.size("train"), rows.size("evaluate")]).toEqual([3, 1]);
  expect([0, 1, 2].map((index) => rows.row("train", index).id)).toEqual(["a/1", "a/2", "a/3"]);
  expect(rows.instanceId("train", 2)).toMatch(/^a_3-train-2-[0-9a-f]{8}$/);
  expect(rows.instanceId("evaluate", 0)).toMatch(/^b_1-evaluate-0-[0-9a-f]{8}$/);
  expect(() => rows.row("train", 3)).toThrow(RangeError);
});
