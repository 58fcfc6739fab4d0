import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pack } from "tar-stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ContextFolders } from "../host/context-folders.ts";
import { contextTar, measureContext, unpackContext } from "./context-tar.ts";

const limit = 10_000_000;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-context-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function makeContext(name: string): Promise<string> {
  const context = path.join(folder, name);
  await mkdir(path.join(context, "sub/.git"), { recursive: true });
  await mkdir(path.join(context, ".git"));
  await writeFile(path.join(context, ".git/config"), "secret");
  await writeFile(path.join(context, "Dockerfile"), "FROM x\n");
  await writeFile(path.join(context, "sub/run.sh"), "#!/bin/sh\n", { mode: 0o755 });
  await symlink("sub/run.sh", path.join(context, "link"));
  return context;
}

async function tarOf(entries: readonly Parameters<ReturnType<typeof pack>["entry"]>[0][]): Promise<Buffer> {
  const tar = pack();
  for (const entry of entries) tar.entry(entry, entry.type === undefined || entry.type === "file" ? "x" : "");
  tar.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of tar) if (chunk instanceof Uint8Array) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe("a build context", () => {
  it("has one hash for equal files, and comes out as it went in", async () => {
    const [one, other] = [await makeContext("one"), await makeContext("other")];
    const measured = await measureContext(one, limit);
    expect(await measureContext(other, limit)).toEqual(measured);
    const contexts = new ContextFolders(path.join(folder, "kept"));
    expect(await contexts.find(measured.hash)).toBeNull();
    await contexts.put(measured.hash, measured.bytes, contextTar(one, limit));
    const found = (await contexts.find(measured.hash)) ?? "";
    expect((await readdir(found, { recursive: true })).sort()).toEqual([
      "Dockerfile",
      "link",
      "sub",
      "sub/.git",
      "sub/run.sh",
    ]);
    expect(await readFile(path.join(found, "Dockerfile"), "utf8")).toBe("FROM x\n");
    expect(await readlink(path.join(found, "link"))).toBe("sub/run.sh");
    expect((await stat(path.join(found, "sub/run.sh"))).mode & 0o111).toBe(0o111);
    await writeFile(path.join(other, "Dockerfile"), "FROM y\n");
    expect((await measureContext(other, limit)).hash).not.toBe(measured.hash);
  });

  it("that is not what its hash says leaves nothing", async () => {
    const context = await makeContext("one");
    const { bytes } = await measureContext(context, limit);
    const contexts = new ContextFolders(path.join(folder, "kept"));
    const hash = createHash("sha256").update("else").digest("hex");
    await expect(contexts.put(hash, bytes, contextTar(context, limit))).rejects.toMatchObject({ code: "refused" });
    expect(await readdir(path.join(folder, "kept"))).toEqual([]);
  });

  it("is bounded", async () => {
    const context = await makeContext("one");
    await expect(measureContext(context, 100)).rejects.toMatchObject({ code: "too_large" });
  });

  it.each([
    ["a name that goes up", [{ name: "../out" }]],
    ["a name that goes up in the middle", [{ name: "a/../../out" }]],
    ["an absolute name", [{ name: "/out" }]],
    ["an absolute link", [{ name: "link", type: "symlink" as const, linkname: "/etc/passwd" }]],
    ["a link that goes up", [{ name: "a/link", type: "symlink" as const, linkname: "../../out" }]],
    [
      "a link that goes up from where another leads",
      [
        { name: "p/q/deep", type: "symlink" as const, linkname: "../../t" },
        { name: "out", type: "symlink" as const, linkname: "p/q/deep/../../x" },
      ],
    ],
    ["a file through a link", [{ name: "d", type: "symlink" as const, linkname: "e" }, { name: "d/out" }]],
    ["a hard link", [{ name: "f" }, { name: "hard", type: "link" as const, linkname: "f" }]],
    ["a device", [{ name: "dev", type: "character-device" as const }]],
    ["a file twice", [{ name: "f" }, { name: "f" }]],
  ])("with %s is refused", async (_what, entries) => {
    const target = path.join(folder, "target");
    await mkdir(target);
    const unpacking = unpackContext(Readable.from([await tarOf(entries)]), target, limit);
    await expect(unpacking).rejects.toMatchObject({ name: "SandboxFileError", code: "bad_archive" });
    expect(await readdir(folder)).toEqual(["target"]);
  });
});
