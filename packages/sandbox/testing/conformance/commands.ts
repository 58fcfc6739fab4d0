/** Commands: exact bytes, caps, closed input, ends of all kinds. */
import { randomBytes } from "node:crypto";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { beforeAll, describe, expect, it } from "vitest";
import { boundary, type ConformanceScene, forever, living, run, said, shell, text } from "./scene.ts";

const mega = 1024 * 1024;
const numbers = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
/** Every byte there is, as printf has it. */
const everyByte = Array.from(numbers, (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");

export function commandCases(scene: ConformanceScene): void {
  describe("commands", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await scene.open({ environment: { FROM_SPEC: "a b", LATER: "spec" } });
    });

    it("get their words as they are, an environment and a folder", async () => {
      const words = ["", "a b", "$HOME", "*", "é🙂", "line\nend"];
      const told = await run(sandbox, ["sh", "-c", `for word; do printf '%s|' "$word"; done`, "sh", ...words]);
      expect(text(told.stdout)).toBe(words.map((word) => `${word}|`).join(""));
      const environment = { LATER: "exec", LINES: "1\n2" };
      const script = `printf '%s,' "$FROM_SPEC" "$LATER" "$LINES" "$PWD"`;
      const result = await shell(sandbox, script, { environment, cwd: "/usr" });
      expect(text(result.stdout)).toBe("a b,exec,1\n2,/usr,");
      expect(await said(sandbox, "pwd")).toBe(sandbox.workdir);
    });

    it("write exact bytes to either stream", async () => {
      const result = await shell(sandbox, `printf '${everyByte}'; printf '${everyByte}' >&2; exit 3`);
      expect([result.exitCode, result.timedOut, result.flooded, result.outOfMemory]).toEqual([3, false, false, false]);
      for (const output of [result.stdout, result.stderr]) {
        expect(Buffer.from(output.head).equals(numbers)).toBe(true);
        expect([output.gapBytes, output.tail.length, output.bytes]).toEqual([0, 0, 256]);
      }
    });

    it("end with their exit code, or 128 and the signal", async () => {
      const codes = await Promise.all(
        ["exit 0", "exit 1", "exit 255", "kill -9 $$", "kill -TERM $$"].map((script) => shell(sandbox, script)),
      );
      expect(codes.map(({ exitCode }) => exitCode)).toEqual([0, 1, 255, 137, 143]);
    });

    it("that are not there, or no programs, fail as commands do", async () => {
      const missing = await run(sandbox, ["rolldeck-no-such-program"]);
      const folder = await run(sandbox, ["/usr"]);
      expect([missing.exitCode, folder.exitCode]).toEqual([127, 126]);
      expect([missing.stdout.bytes, folder.stdout.bytes]).toEqual([0, 0]);
      expect([missing.stderr.bytes > 0, folder.stderr.bytes > 0]).toEqual([true, true]);
    });

    it("with a zero byte or a megabyte in a word fail as commands do", async () => {
      const zero = await run(sandbox, ["echo", "a\0b"]);
      const long = await run(sandbox, ["echo", "x".repeat(mega)]);
      expect([zero.exitCode, long.exitCode]).toEqual([126, 126]);
    });

    it("have an input that is at its end", async () => {
      const result = await run(sandbox, ["cat"]);
      expect([result.exitCode, result.stdout.bytes]).toEqual([0, 0]);
    });

    it("get the bytes of their input, or leave them", async () => {
      const stdin = randomBytes(3 * mega);
      const all = await run(sandbox, ["cat"], { stdin, maxOutputBytes: 4 * mega });
      expect(Buffer.from(all.stdout.head).equals(stdin)).toBe(true);
      expect((await run(sandbox, ["true"], { stdin })).exitCode).toBe(0);
      expect((await run(sandbox, ["cat"], { stdin: new Uint8Array(0) })).exitCode).toBe(0);
    });

    it("keep all of a stream up to the limit, and head and tail of a longer one", async () => {
      for (const [bytes, gap] of [
        [999, 0],
        [1000, 0],
        [1001, 1],
        [0, 0],
      ] as const) {
        const script = `head -c ${bytes} /dev/zero | tr '\\0' a; head -c ${bytes} /dev/zero | tr '\\0' b >&2`;
        const result = await shell(sandbox, script, { maxOutputBytes: 1000 });
        for (const output of [result.stdout, result.stderr]) {
          expect([output.bytes, output.gapBytes]).toEqual([bytes, gap]);
          expect(output.head.length + output.tail.length).toBe(bytes - gap);
        }
      }
    });

    it("may write 100 MB to each stream, of which head and tail are kept", async () => {
      for (const to of ["", " >&2"]) {
        const script = `{ printf first; head -c 104857600 /dev/zero; printf last; }${to}`;
        const result = await shell(sandbox, script, { maxOutputBytes: 64 * 1024 });
        const output = to === "" ? result.stdout : result.stderr;
        expect([result.exitCode, output.bytes]).toEqual([0, 104_857_600 + 9]);
        expect(output.head.length + output.tail.length).toBe(64 * 1024);
        expect([text(output).slice(0, 5), text(output).slice(-4)]).toEqual(["first", "last"]);
      }
    });

    it("may write one line of 20 MB", async () => {
      const result = await shell(sandbox, "head -c 20971520 /dev/zero | tr '\\0' x");
      expect([result.exitCode, result.stdout.bytes, result.stdout.gapBytes]).toEqual([0, 20 * mega, 19 * mega]);
    });

    it("that never stop writing are ended past the second limit", async () => {
      const result = await run(sandbox, ["yes", "rolldeck-flood"], { maxReadBytes: 8 * mega });
      expect([result.flooded, result.timedOut, result.exitCode]).toEqual([true, false, null]);
      expect(result.stdout.bytes).toBeGreaterThanOrEqual(8 * mega);
      expect(await living(sandbox, "yes rolldeck-flood")).toEqual([]);
    });

    it("may go on after they closed their outputs", async () => {
      expect((await shell(sandbox, "exec >&- 2>&-; sleep 1; exit 7")).exitCode).toBe(7);
    });

    it("end although something they left behind holds their outputs", async () => {
      const result = await shell(sandbox, "sleep 600 & echo said");
      expect([result.exitCode, result.timedOut, text(result.stdout)]).toEqual([0, false, "said\n"]);
      await sandbox.killAll(forever);
      expect(await living(sandbox, "sleep 600")).toEqual([]);
    });

    it("run beside each other", async () => {
      const results = await Promise.all(Array.from({ length: 8 }, (_, at) => shell(sandbox, `echo ${at}; exit ${at}`)));
      expect(results.map(({ exitCode, stdout }) => [exitCode, text(stdout)])).toEqual(
        Array.from({ length: 8 }, (_, at) => [at, `${at}\n`]),
      );
    });

    it("are let go by an abort, with its reason, and ended by killAll", async () => {
      const abort = new AbortController();
      const reason = new Error("the run was stopped");
      const running = sandbox.exec({ command: ["sleep", "601"], timeoutMs: 60_000 }, abort.signal);
      setTimeout(() => abort.abort(reason), 300);
      await expect(running).rejects.toBe(reason);
      await expect(sandbox.exec({ command: ["true"], timeoutMs: 1_000 }, abort.signal)).rejects.toBe(reason);
      await sandbox.killAll(forever);
      expect(await living(sandbox, "sleep 601")).toEqual([]);
      expect((await run(sandbox, ["true"])).exitCode).toBe(0);
    });

    scene.able("users", "run as another user, whose processes are ended apart", async () => {
      const user = scene.facts.otherUser;
      expect(await said(sandbox, "id -un", { user })).toBe(user);
      expect(await said(sandbox, "id -un")).not.toBe(user);
      await shell(sandbox, "sleep 602 >/dev/null 2>&1 &", { user });
      await sandbox.killAll(forever);
      expect(await living(sandbox, "sleep 602")).toHaveLength(1);
      await sandbox.killAll(forever, user);
      expect(await living(sandbox, "sleep 602")).toEqual([]);
      await expect(run(sandbox, ["true"], { user: "rolldeck-nobody" })).rejects.toEqual(boundary("refused"));
    });
  });
}
