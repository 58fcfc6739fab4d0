import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import fc from "fast-check";
import { extract, type Header, pack } from "tar-stream";
import { describe, expect, it } from "vitest";
import { checkedArchive, checkGivenArchive } from "./checked-archive.ts";

type Entry = Partial<Header> & { readonly name: string; readonly body?: string };

async function archive(...entries: readonly Entry[]): Promise<Uint8Array> {
  const output = pack();
  for (const { body, ...header } of entries) output.entry(header, body ?? "");
  output.finalize();
  return joined(output);
}

async function joined(chunks: AsyncIterable<unknown>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) if (chunk instanceof Uint8Array) parts.push(chunk);
  return Buffer.concat(parts);
}

async function entriesOf(tar: Uint8Array): Promise<(Header & { readonly body: string })[]> {
  const reader = extract();
  reader.end(tar);
  const found: (Header & { readonly body: string })[] = [];
  for await (const entry of reader) found.push({ ...entry.header, body: (await joined(entry)).toString() });
  return found;
}

const put = async (...entries: readonly Entry[]) =>
  entriesOf(await joined(checkedArchive(await archive(...entries), "/dest")));

const refused = (trouble: RegExp) =>
  expect.objectContaining({ name: "SandboxFileError", code: "bad_archive", message: expect.stringMatching(trouble) });

const bad: readonly [string, Entry, RegExp][] = [
  ["an absolute name", { name: "/etc/passwd", body: "x" }, /leads out/],
  ["a climbing name", { name: "a/../../etc/passwd", body: "x" }, /leads out/],
  ["a name that climbs and comes back", { name: "a/../b", body: "x" }, /leads out/],
  ["an absolute link", { name: "l", type: "symlink", linkname: "/etc" }, /link "l" leads out/],
  ["a climbing link", { name: "a/l", type: "symlink", linkname: "../../etc" }, /leads out/],
  ["a link that climbs through another", { name: "a/b/l", type: "symlink", linkname: "x/.." }, /leads out/],
  ["a hard link", { name: "h", type: "link", linkname: "etc/shadow" }, /is a link/],
  ["a device", { name: "mem", type: "character-device" }, /character-device/],
  ["a block device", { name: "sda", type: "block-device" }, /block-device/],
  ["a pipe", { name: "p", type: "fifo" }, /fifo/],
];

describe("archives into a sandbox", () => {
  it("keep files, folders, links inside, modes and times", async () => {
    const mtime = new Date(1_700_000_000_000);
    const entries = await put(
      { name: "./a/", type: "directory", mode: 0o700 },
      { name: "./a/run.sh", mode: 0o755, mtime, body: "#!/bin/sh\n" },
      { name: "./a/b/l", type: "symlink", linkname: "../run.sh" },
    );
    expect(entries.map(({ name, type, mode, linkname, body }) => [name, type, mode, linkname, body])).toEqual([
      ["a/", "directory", 0o700, null, ""],
      ["a/run.sh", "file", 0o755, null, "#!/bin/sh\n"],
      ["a/b/", "directory", 0o755, null, ""],
      ["a/b/l", "symlink", 0o644, "../run.sh", ""],
    ]);
    expect(entries[1]?.mtime).toEqual(mtime);
  });

  it("lose owners and set-id bits", async () => {
    const [entry] = await put({ name: "su", mode: 0o6755, uid: 1000, gid: 1000, uname: "x", body: "" });
    expect([entry?.mode, entry?.uid, entry?.gid, entry?.uname]).toEqual([0o755, 0, 0, ""]);
  });

  for (const [what, entry, trouble] of bad) {
    it(`are refused for ${what}, before any of it is handed on`, async () => {
      const tar = await archive({ name: "fine", body: "x" }, entry);
      const handed: Uint8Array[] = [];
      const passing = (async () => {
        for await (const chunk of checkedArchive(tar, "/dest")) handed.push(chunk);
      })();
      await expect(passing).rejects.toEqual(refused(trouble));
      expect(handed).toEqual([]);
      await expect(joined(checkedArchive(stream(tar, 700), "/dest"))).rejects.toEqual(refused(trouble));
    });
  }

  it("are refused for an entry under a link of the same archive", async () => {
    const entries: Entry[] = [
      { name: "a/l", type: "symlink", linkname: ".." },
      { name: "a/l/x", body: "x" },
    ];
    await expect(put(...entries)).rejects.toEqual(refused(/under a link/));
  });

  it("are refused when they are none, or cut", async () => {
    await expect(joined(checkedArchive(Buffer.alloc(1024, "x"), "/dest"))).rejects.toEqual(refused(/can't be read/));
    const cut = (await archive({ name: "a", body: "x".repeat(5000) })).subarray(0, 2000);
    await expect(joined(checkedArchive(cut, "/dest"))).rejects.toEqual(refused(/can't be read/));
  });

  it("pass on what the source of a stream failed with", async () => {
    const failing = (async function* () {
      yield await archive({ name: "a", body: "x" });
      throw new Error("the disk went away");
    })();
    await expect(joined(checkedArchive(failing, "/dest"))).rejects.toThrow("the disk went away");
  });

  it("never lead out, whatever their names and links", async () => {
    const part = fc.constantFrom("a", "b", "..", ".", "");
    const path = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/"));
    const entry = fc.record({ name: path, type: fc.constantFrom("symlink", "file", "directory"), linkname: path });
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 5 }), async (entries) => {
        const links = new Map<string, string>();
        try {
          for (const { name, type, linkname } of await put(...(entries as Entry[]))) {
            const place = walk(links, name);
            expect(place).not.toBeNull();
            if (type === "symlink") links.set(name, linkname ?? "");
          }
          for (const name of links.keys()) expect(walk(links, name)).not.toBeNull();
        } catch (error) {
          if (!(error instanceof SandboxFileError)) throw error;
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("archives out of a sandbox", () => {
  it("pass when every name begins with what was asked for", async () => {
    const tar = await archive({ name: "top/", type: "directory" }, { name: "top/a", body: "x" });
    await expect(checkGivenArchive(tar, "top", "/x/top")).resolves.toBeUndefined();
    await expect(checkGivenArchive(tar, "other", "/x/other")).rejects.toEqual(refused(/no part of/));
  });

  for (const [what, entry, trouble] of bad) {
    it(`are refused for ${what}`, async () => {
      await expect(checkGivenArchive(await archive(entry), "", "/x")).rejects.toEqual(refused(trouble));
    });
  }
});

async function* stream(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Follows a path as a file system would, up to its limit of 40 links; null = it climbed out. */
function walk(links: ReadonlyMap<string, string>, path: string): string[] | null {
  let at: string[] = [];
  let followed = 0;
  const left = path.split("/");
  while (left.length > 0) {
    const part = left.shift();
    if (part === undefined || part === "" || part === ".") continue;
    if (part === "..") {
      if (at.pop() === undefined) return null;
      continue;
    }
    const target = links.get([...at, part].join("/"));
    if (target === undefined) at = [...at, part];
    else if (++followed > 40) return at;
    else left.unshift(...target.split("/"));
  }
  return at;
}
