import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { KnownImages } from "./known-images.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-images-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("images are known over restarts; a file that says nothing is as none", async () => {
  const file = path.join(folder, "images.json");
  const first = await KnownImages.load(file);
  await Promise.all(["debian:12", "python:3", "debian:12"].map((key) => first.saw(key)));
  expect((await KnownImages.load(file)).all()).toEqual(["debian:12", "python:3"]);
  for (const broken of ["", "[", '{"a":1}']) {
    await writeFile(file, broken);
    expect((await KnownImages.load(file)).all()).toEqual([]);
  }
});
