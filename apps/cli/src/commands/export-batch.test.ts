import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { writeBatch } from "./export-batch.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-export-"));
});
afterEach(() => rm(folder, { recursive: true }));

const pages = (texts: readonly string[], failure?: Error) => ({
  async *fetchStepBatch() {
    for (const text of texts) yield { bytes: new TextEncoder().encode(text), rows: 1 };
    if (failure) throw failure;
  },
});
const asked = () => ({ runId: "r", step: 1, format: "jsonl" as const, file: path.join(folder, "batch.jsonl") });

it("writes every page to one file and says what it wrote", async () => {
  expect(await writeBatch(pages(["{}\n", "{}\n"]), asked())).toEqual({ ...asked(), rows: 2, bytes: 6 });
  expect(await readFile(asked().file, "utf8")).toBe("{}\n{}\n");
  expect(await readdir(folder)).toEqual(["batch.jsonl"]);
});

it("leaves the old file, and no half of a new one, where the server fails on the way", async () => {
  await writeFile(asked().file, "old");
  await expect(writeBatch(pages(["{}\n"], new Error("gone")), asked())).rejects.toThrow("gone");
  expect(await readFile(asked().file, "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["batch.jsonl"]);
});

it("makes one Parquet file or none", async () => {
  const parquet = { ...asked(), format: "parquet" as const };
  expect(await writeBatch(pages(["PAR1"]), parquet)).toMatchObject({ rows: 1, bytes: 4 });
  await expect(writeBatch(pages(["PAR1", "PAR1"]), parquet)).rejects.toThrow("use --format jsonl");
});

it("says which file can't be written", async () => {
  const file = path.join(folder, "nowhere/batch.jsonl");
  await expect(writeBatch(pages([]), { ...asked(), file })).rejects.toThrow(`${file} can't be written`);
});
