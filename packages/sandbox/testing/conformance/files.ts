/** Files and archives: exact, whole or not at all, and never out of the sandbox or the folder they are for. */
import { randomBytes } from "node:crypto";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { extract, type Header, pack } from "tar-stream";
import { beforeAll, describe, expect, it } from "vitest";
import { type ConformanceScene, fileError, forever, said } from "./scene.ts";

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

async function contents(tar: Uint8Array): Promise<Record<string, string>> {
  const reader = extract();
  reader.end(tar);
  const found: Record<string, string> = {};
  for await (const entry of reader) {
    const body = (await joined(entry)).toString();
    found[entry.header.name] = entry.header.type === "symlink" ? `-> ${entry.header.linkname}` : body;
  }
  return found;
}

const limit = { maxBytes: 8 * 1024 * 1024 };

export function fileCases(scene: ConformanceScene): void {
  const at = (name: string): string => `${scene.facts.folder}/${name}`;

  describe("files", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await scene.open();
    });
    const write = (path: string, content: string | Uint8Array, mode?: number): Promise<void> =>
      sandbox.writeFile(path, Buffer.from(content), { mode }, forever);
    const read = async (path: string): Promise<string> =>
      Buffer.from(await sandbox.readFile(path, limit, forever)).toString();

    it("are read as they were written", async () => {
      const bytes = randomBytes(1024 * 1024);
      await write(at("bytes"), bytes);
      const back = await sandbox.readFile(at("bytes"), { maxBytes: bytes.length }, forever);
      expect(Buffer.from(back).equals(bytes)).toBe(true);
      expect(await said(sandbox, `wc -c <${at("bytes")}`)).toBe("1048576");
      await write(at("zeros"), "a\0b\r\n\0");
      expect(await read(at("zeros"))).toBe("a\0b\r\n\0");
      await write(at("empty"), "");
      expect((await sandbox.readFile(at("empty"), { maxBytes: 0 }, forever)).length).toBe(0);
    });

    it("have names with anything in them, in folders that are made", async () => {
      for (const name of ["a b", "-rf", "*", "$(id)", "'", '"', "é🙂", "a\\b"]) {
        const path = at(`deep/er/${name}`);
        await write(path, name);
        expect(await read(path)).toBe(name);
      }
    });

    it("keep their mode when they are written again", async () => {
      await write(at("mode"), "1");
      expect(await said(sandbox, `stat -c %a ${at("mode")}`)).toBe("644");
      await write(at("mode"), "2", 0o755);
      await write(at("mode"), "3");
      expect(await said(sandbox, `stat -c %a ${at("mode")}; cat ${at("mode")}`)).toBe("755\n3");
    });

    it("are written through a link, which stays one", async () => {
      await said(sandbox, `mkdir -p ${at("real")} && echo old >${at("real/file")} && ln -sf real/file ${at("link")}`);
      await write(at("link"), "new");
      expect(await said(sandbox, `readlink ${at("link")}; cat ${at("real/file")}`)).toBe("real/file\nnew");
    });

    it("with relative names lie in the working folder", async () => {
      const inside = await scene.open({ workdir: scene.facts.folder });
      await inside.writeFile("relative", Buffer.from("here"), {}, forever);
      expect(Buffer.from(await inside.readFile(at("relative"), limit, forever)).toString()).toBe("here");
      await scene.close(inside);
    });

    it("that can't be read are told apart", async () => {
      await write(at("ten"), "0123456789");
      const reading = (path: string, maxBytes = 10) => sandbox.readFile(path, { maxBytes }, forever);
      expect((await reading(at("ten"))).length).toBe(10);
      await expect(reading(at("ten"), 9)).rejects.toEqual(fileError("too_large"));
      await expect(reading(at("none"))).rejects.toEqual(fileError("not_found"));
      await expect(reading(scene.facts.folder)).rejects.toEqual(fileError("is_directory"));
      await expect(reading(at("ten/x"))).rejects.toEqual(fileError("not_a_directory"));
      await expect(reading("a\0b")).rejects.toEqual(fileError("bad_path"));
      await expect(reading("")).rejects.toEqual(fileError("bad_path"));
      await expect(reading(`/${"x".repeat(5000)}`)).rejects.toEqual(fileError("bad_path"));
      await expect(reading("/dev/zero")).rejects.toEqual(expect.objectContaining({ name: "SandboxFileError" }));
    });

    it("that can't be written are told apart, and leave nothing", async () => {
      await write(at("plain"), "x");
      await expect(write(scene.facts.folder, "x")).rejects.toEqual(fileError("is_directory"));
      await expect(write(at("plain/x"), "x")).rejects.toEqual(fileError("not_a_directory"));
      await expect(write("/proc/sys/kernel/hostname", "x")).rejects.toEqual(
        expect.objectContaining({ name: "SandboxFileError" }),
      );
      await expect(write("", "x")).rejects.toEqual(fileError("bad_path"));
    });

    scene.able("memory", "are whole or not at all when the disk is full", async () => {
      const { smallFolder } = scene.facts;
      await write(`${smallFolder}/kept`, "kept");
      const big = new Uint8Array(160 * 1024 * 1024);
      await expect(write(`${smallFolder}/kept`, big)).rejects.toEqual(fileError("no_space"));
      expect(await said(sandbox, `cat ${smallFolder}/kept; ls -A ${smallFolder} | wc -l`)).toBe("kept1");
    });
  });

  describe("archives", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await scene.open();
    });

    it("are unpacked and packed as they are", async () => {
      const tar = await archive(
        { name: "top/", type: "directory" },
        { name: "top/run.sh", mode: 0o755, body: "#!/bin/sh\necho ran\n" },
        { name: "top/deep/é b", body: "x\0y" },
        { name: "top/link", type: "symlink", linkname: "deep/é b" },
      );
      await sandbox.putArchive(at("put/here"), tar, {}, forever);
      expect(await said(sandbox, `${at("put/here/top/run.sh")}; readlink ${at("put/here/top/link")}`)).toBe(
        "ran\ndeep/é b",
      );
      const back = await contents(await sandbox.getArchive(at("put/here/top"), limit, forever));
      expect(back).toEqual({
        "top/": "",
        "top/run.sh": "#!/bin/sh\necho ran\n",
        "top/deep/": "",
        "top/deep/é b": "x\0y",
        "top/link": "-> deep/é b",
      });
      const one = await contents(await sandbox.getArchive(at("put/here/top/run.sh"), limit, forever));
      expect(one).toEqual({ "run.sh": "#!/bin/sh\necho ran\n" });
    });

    it("may come as a stream larger than any buffer", async () => {
      const tar = await archive({ name: "big", body: "x".repeat(24 * 1024 * 1024) });
      const chunks = (async function* () {
        for (let start = 0; start < tar.length; start += 65_537) yield tar.subarray(start, start + 65_537);
      })();
      await sandbox.putArchive(at("stream"), chunks, {}, forever);
      expect(await said(sandbox, `wc -c <${at("stream/big")}`)).toBe(String(24 * 1024 * 1024));
    });

    it("that lead out are refused, and leave nothing outside", async () => {
      const entries: Entry[] = [
        { name: "../out", body: "x" },
        { name: at("out"), body: "x" },
        { name: "a/../../out", body: "x" },
        { name: "l", type: "symlink", linkname: "/etc" },
        { name: "l", type: "symlink", linkname: "../.." },
        { name: "h", type: "link", linkname: "/etc/passwd" },
        { name: "d", type: "character-device", devmajor: 1, devminor: 1 },
        { name: "p", type: "fifo" },
      ];
      for (const entry of entries) {
        const tar = await archive({ name: "fine", body: "x" }, entry);
        await expect(sandbox.putArchive(at("trap"), tar, {}, forever)).rejects.toEqual(fileError("bad_archive"));
      }
      expect(await said(sandbox, `ls -A ${at("trap")} 2>/dev/null; ls ${at("out")} 2>/dev/null; true`)).toBe("");
    });

    it("are not led astray by a link that lay there before", async () => {
      await said(sandbox, `mkdir -p ${at("aim")} ${at("laid")} && ln -s ${at("aim")} ${at("laid/sub")}`);
      const tar = await archive({ name: "sub/file", body: "x" });
      await sandbox.putArchive(at("laid"), tar, {}, forever).catch(() => undefined);
      expect(await said(sandbox, `ls -A ${at("aim")}`)).toBe("");
    });

    it("that are none, or cut, are refused", async () => {
      const tar = await archive({ name: "file", body: "x".repeat(100_000) });
      const putting = (bytes: Uint8Array) => sandbox.putArchive(at("bad"), bytes, {}, forever);
      await expect(putting(Buffer.alloc(2048, "x"))).rejects.toEqual(fileError("bad_archive"));
      await expect(putting(tar.subarray(0, 50_000))).rejects.toEqual(fileError("bad_archive"));
    });

    it("of what leads out of its folder are not given", async () => {
      await said(sandbox, `mkdir -p ${at("leak")} && ln -s /etc/passwd ${at("leak/l")}`);
      await expect(sandbox.getArchive(at("leak"), limit, forever)).rejects.toEqual(fileError("bad_archive"));
      await said(sandbox, `mkdir -p ${at("pipe")} && mkfifo ${at("pipe/p")}`);
      await expect(sandbox.getArchive(at("pipe"), limit, forever)).rejects.toEqual(fileError("bad_archive"));
    });

    it("that are too large, or of nothing, are not given", async () => {
      await said(sandbox, `mkdir -p ${at("large")} && head -c 3000000 /dev/zero >${at("large/file")}`);
      const getting = (path: string, maxBytes: number) => sandbox.getArchive(path, { maxBytes }, forever);
      await expect(getting(at("large"), 2_000_000)).rejects.toEqual(fileError("too_large"));
      expect((await getting(at("large"), 4_000_000)).length).toBeGreaterThan(3_000_000);
      await expect(getting(at("nothing"), 1_000)).rejects.toEqual(fileError("not_found"));
    });
  });
}
