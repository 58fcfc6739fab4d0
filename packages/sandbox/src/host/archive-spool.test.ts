import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { extract } from "tar-stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inPieces, makeArchive } from "../../testing/make-archive.ts";
import { deferred } from "../remote/deferred.ts";
import { ArchiveSpool } from "./archive-spool.ts";

let folder: string;
let unpacked: string[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "rolldeck-spool-"));
  unpacked = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function note(checked: AsyncIterable<Uint8Array>): Promise<string> {
  const reader = extract();
  const feeding = (async () => {
    for await (const chunk of checked) reader.write(chunk);
    reader.end(null);
  })();
  for await (const entry of reader) {
    unpacked.push(entry.header.name);
    entry.resume();
  }
  await feeding;
  return "done";
}

describe("a spool of archives", () => {
  it("unpacks what came whole, and keeps no file of it", async () => {
    const spool = new ArchiveSpool(folder);
    const tar = await makeArchive({ name: "a/b", body: "x".repeat(300_000) }, { name: "c", body: "y" });
    const seen: string[][] = [];
    const unpack = async (checked: AsyncIterable<Uint8Array>) => {
      seen.push(await readdir(folder));
      return await note(checked);
    };
    expect(await spool.whole(inPieces(tar), "/to", unpack)).toBe("done");
    expect(unpacked).toEqual(["a/", "a/b", "c"]);
    expect([seen, await readdir(folder)]).toEqual([[[]], []]);
    expect(await spool.whole(inPieces(await makeArchive()), "/to", note)).toBe("done");
  });

  it.each([
    [
      "leads out after a good entry",
      async () => makeArchive({ name: "fine", body: "x" }, { name: "../out", body: "x" }),
    ],
    [
      "is cut",
      async () => (await makeArchive({ name: "fine" }, { name: "f", body: "x".repeat(9000) })).subarray(0, 5000),
    ],
    ["is none", async () => Buffer.alloc(2048, "x")],
  ])("unpacks nothing of one that %s", async (_what, make) => {
    const spool = new ArchiveSpool(folder);
    const putting = spool.whole(inPieces(await make()), "/to", note);
    await expect(putting).rejects.toMatchObject({ name: "SandboxFileError", code: "bad_archive", path: "/to" });
    expect([unpacked, await readdir(folder)]).toEqual([[], []]);
  });

  it("unpacks nothing of one whose sender goes away", async () => {
    const spool = new ArchiveSpool(folder);
    const tar = await makeArchive({ name: "fine", body: "x" }, { name: "more", body: "x".repeat(5000) });
    const broken = async function* () {
      yield tar.subarray(0, 2048);
      throw new Error("the connection ended");
    };
    await expect(spool.whole(broken(), "/to", note)).rejects.toThrow("the connection ended");
    expect(unpacked).toEqual([]);
  });

  it("keeps each and all of them to a size, and has room again afterwards", async () => {
    const spool = new ArchiveSpool(folder, { maxBytes: 20_000, maxTotalBytes: 30_000 });
    const of = async (bytes: number) => inPieces(await makeArchive({ name: "f", body: "x".repeat(bytes) }));
    await expect(spool.whole(await of(30_000), "/to", note)).rejects.toMatchObject({ code: "too_large" });
    const [held, letGo] = [deferred<void>(), deferred<void>()];
    const first = spool.whole(await of(15_000), "/to", () => {
      held.resolve();
      return letGo.promise;
    });
    await held.promise;
    const second = await of(18_000);
    await expect(spool.whole(second, "/to", note)).rejects.toMatchObject({ code: "full", retryable: true });
    letGo.resolve();
    await first;
    expect(await spool.whole(await of(18_000), "/to", note)).toBe("done");
  });
});
