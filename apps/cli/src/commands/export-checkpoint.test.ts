import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { writeCheckpoint } from "./export-checkpoint.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-export-"));
});
afterEach(() => rm(folder, { recursive: true }));

const asked = () => ({ id: "01h8x2m4-v40", format: "peft" as const, file: path.join(folder, "model.tar") });
const sent = (parts: readonly string[], length: number, failure?: Error) => ({
  async exportCheckpoint(_id: string, options?: { readonly format?: string }) {
    expect(options).toEqual({ format: "peft" });
    const bytes = (async function* () {
      for (const part of parts) yield new TextEncoder().encode(part);
      if (failure) throw failure;
    })();
    return { length, bytes };
  },
});

it("writes the whole file, tells how far it is, and leaves nothing beside it", async () => {
  const seen: [number, number][] = [];
  const written = await writeCheckpoint(sent(["abc", "de"], 5), asked(), (...at) => seen.push(at));
  expect(written).toEqual({ ...asked(), bytes: 5 });
  expect(seen).toEqual([
    [3, 5],
    [5, 5],
  ]);
  expect(await readFile(asked().file, "utf8")).toBe("abcde");
  expect(await readdir(folder)).toEqual(["model.tar"]);
});

it.each([
  ["the connection is cut", sent(["abc"], 5, new Error("gone")), "gone"],
  ["fewer bytes come than were named", sent(["abc"], 5), "3 of 5 bytes"],
])("leaves the old file, and no half of a new one, where %s", async (_when, server, message) => {
  await writeFile(asked().file, "old");
  await expect(writeCheckpoint(server, asked(), () => undefined)).rejects.toThrow(message);
  expect(await readFile(asked().file, "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["model.tar"]);
});

it("says which file can't be written", async () => {
  const file = path.join(folder, "nowhere/model.tar");
  await expect(writeCheckpoint(sent([], 0), { ...asked(), file }, () => undefined)).rejects.toThrow(
    `${file} can't be written`,
  );
});
