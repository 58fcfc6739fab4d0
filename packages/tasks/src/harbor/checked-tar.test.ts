import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { pack } from "tar-stream";
import { describe, expect, test } from "vitest";
import { readTar, type TarEntry, TarRefusal, writeTar } from "./checked-tar.ts";

const limits = { maxBytes: 1_000_000, maxEntries: 100 };
type Raw = {
  name: string;
  type?: "file" | "symlink" | "link" | "directory" | "fifo" | "character-device";
  linkname?: string;
  text?: string;
};

async function tarOf(raw: readonly Raw[]): Promise<Buffer> {
  const writer = pack();
  for (const { name, type = "file", linkname, text = "" } of raw) {
    const header = { name, type, ...(linkname === undefined ? {} : { linkname }) };
    if (type === "file") writer.entry(header, text);
    else writer.entry(header);
  }
  writer.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of writer) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks);
}
const read = async (raw: readonly Raw[]) => {
  const odd: string[] = [];
  const entries = await readTar(await tarOf(raw), limits, (name, why) => odd.push(`${name}: ${why}`));
  return { names: entries.map(({ name }) => name), entries, odd };
};

describe("a tar from somewhere", () => {
  test.each<[Raw, RegExp]>([
    [{ name: "../up" }, /leads out/],
    [{ name: "a/../../up" }, /leads out/],
    [{ name: "/etc/passwd" }, /leads out/],
    [{ name: "link", type: "symlink", linkname: "/etc" }, /link that leads out/],
    [{ name: "a/link", type: "symlink", linkname: "../../x" }, /link that leads out/],
    [{ name: "hard", type: "link", linkname: "/etc/passwd" }, /hard link to what is not there/],
    [{ name: "pipe", type: "fifo" }, /it is a fifo/],
    [{ name: "dev", type: "character-device" }, /it is a character-device/],
  ])("%j does not come through", async (raw, why) => {
    const { names, odd } = await read([raw, { name: "fine", text: "x" }]);
    expect(names).toEqual(["fine"]);
    expect(odd.join()).toMatch(why);
  });

  test("a file below a link, or below a file, does not come through", async () => {
    const { names, odd } = await read([
      { name: "to", type: "directory" },
      { name: "link", type: "symlink", linkname: "to" },
      { name: "link/inner", text: "x" },
      { name: "file", text: "x" },
      { name: "file/inner", text: "x" },
    ]);
    expect(names).toEqual(["to", "link", "file"]);
    expect(odd).toEqual(["link/inner: link is no folder", "file/inner: file is no folder"]);
  });

  test("a hard link is the file that it is of", async () => {
    const { entries } = await read([
      { name: "a", text: "text" },
      { name: "b", type: "link", linkname: "a" },
    ]);
    expect(entries.map(({ kind, content }) => [kind, Buffer.from(content).toString()])).toEqual([
      ["file", "text"],
      ["file", "text"],
    ]);
  });

  test("too much is refused: bytes, files, and a gzip that grows", async () => {
    const ignore = (): void => {};
    const big = await tarOf([{ name: "big", text: "x".repeat(5000) }]);
    await expect(readTar(big, { maxBytes: 4999, maxEntries: 9 }, ignore)).rejects.toThrow(/more than 4999 bytes/);
    await expect(readTar(gzipSync(big), { maxBytes: 4999, maxEntries: 9 }, ignore)).rejects.toThrow(/4999/);
    expect(await readTar(gzipSync(big), { maxBytes: 5000, maxEntries: 9 }, ignore)).toHaveLength(1);
    const many = await tarOf([{ name: "a" }, { name: "b" }, { name: "c" }]);
    await expect(readTar(many, { maxBytes: 9, maxEntries: 2 }, ignore)).rejects.toThrow(/more than 2 files/);
  });

  test("bytes that are no tar are refused, whatever they are", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), async (bytes) => {
        const outcome = await readTar(bytes, limits, () => {}).catch((cause: unknown) => cause);
        expect(outcome instanceof TarRefusal || Array.isArray(outcome)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test("what is written is read back as it was", async () => {
    const name = fc.stringMatching(/^[a-z]{1,8}(\/[a-z]{1,8}){0,2}\.txt$/);
    const entry = fc.record({
      name,
      kind: fc.constant("file" as const),
      mode: fc.constantFrom(0o644, 0o755),
      mtimeMs: fc.constant(1000),
      content: fc.uint8Array({ maxLength: 2000 }),
      target: fc.constant(""),
    });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(entry, { selector: (one) => one.name, maxLength: 8 }), async (entries) => {
        const back = await readTar(await writeTar(entries), limits, () => {});
        const plain = (all: readonly TarEntry[]) =>
          all.map((one) => ({ ...one, content: Buffer.from(one.content).toString("hex") }));
        expect(plain(back)).toEqual(plain(entries));
      }),
      { numRuns: 60 },
    );
  });
});
