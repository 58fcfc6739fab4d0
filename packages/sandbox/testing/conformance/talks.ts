/** Commands that are talked to: input and outputs as they come, terminals, and what is left when a talk is over. */
import type { Sandbox, SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import { beforeAll, describe, expect, it } from "vitest";
import { boundary, type ConformanceScene, forever, living, run } from "./scene.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Reads on until the text is there, and answers with all that came. */
function reader(process: SandboxProcess) {
  const chunks = process.stdout[Symbol.asyncIterator]();
  let got = "";
  return async (wanted: string): Promise<string> => {
    while (!got.includes(wanted)) {
      const next = await chunks.next();
      if (next.done) throw new Error(`it ended after ${JSON.stringify(got)}`);
      got += Buffer.from(next.value).toString();
    }
    return got;
  };
}

async function drain(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of stream) parts.push(chunk);
  return Buffer.concat(parts);
}

export function talkCases(scene: ConformanceScene): void {
  describe("talks", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await scene.open();
    });
    const spawn = (script: string, tty?: { columns: number; rows: number }): Promise<SandboxProcess> =>
      sandbox.spawn({ command: ["sh", "-c", script], ...(tty === undefined ? {} : { tty }) }, forever);

    it("answer line by line, and end when their input does", async () => {
      const talk = await spawn(`while read -r line; do echo "got $line"; done; echo over; exit 5`);
      const read = reader(talk);
      await talk.write(bytesOf("one\n"));
      expect(await read("got one\n")).toBe("got one\n");
      await talk.write(bytesOf("two\n"));
      await read("got two\n");
      await talk.endStdin();
      await read("over\n");
      expect(await talk.wait()).toEqual({ exitCode: 5 });
      await talk.close();
    });

    it("carry exact bytes both ways, and keep the streams apart", async () => {
      const talk = await spawn("cat; printf 'an error' >&2");
      const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => (at * 7) % 256);
      const both = Promise.all([drain(talk.stdout), drain(talk.stderr)]);
      await talk.write(bytes);
      await talk.endStdin();
      const [stdout, stderr] = await both;
      expect(stdout.equals(bytes)).toBe(true);
      expect(stderr.toString()).toBe("an error");
      expect(await talk.wait()).toEqual({ exitCode: 0 });
    });

    it("wait for a slow reader instead of holding what it has not read", async () => {
      const talk = await spawn("head -c 60000000 /dev/zero; echo done >&2");
      const ended = drain(talk.stderr);
      let bytes = 0;
      for await (const chunk of talk.stdout) {
        bytes += chunk.length;
        if (bytes < 2_000_000) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect([bytes, (await ended).toString()]).toEqual([60_000_000, "done\n"]);
    });

    it("may have a terminal, of the size it is given", async () => {
      const talk = await spawn("stty size; read -r line; stty size; exit 3", { columns: 91, rows: 17 });
      const read = reader(talk);
      await read("17 91");
      await talk.resize?.(120, 40);
      await talk.write(bytesOf("go\n"));
      expect(await read("40 120")).toContain("go");
      expect(await talk.wait()).toEqual({ exitCode: 3 });
    });

    it("can be let go of, any number of times, and ended by killAll", async () => {
      const talk = await spawn("echo up; exec sleep 621");
      // One that is let go of before it began may begin after everything else was ended.
      await reader(talk)("up");
      await talk.close();
      await talk.close();
      await sandbox.killAll(forever);
      expect(await living(sandbox, "sleep 621")).toEqual([]);
      await expect(talk.write(bytesOf("x"))).rejects.toEqual(expect.objectContaining({ name: "BoundaryError" }));
      expect((await run(sandbox, ["true"])).exitCode).toBe(0);
    });

    it("end with 137 when they are killed, with the sandbox still there", async () => {
      const talk = await spawn("echo up; exec sleep 622");
      await reader(talk)("up");
      await sandbox.killAll(forever);
      expect(await talk.wait()).toEqual({ exitCode: 137 });
    });

    it("fail as lost when the sandbox goes away", async () => {
      const own = await scene.open();
      const talk = await own.spawn({ command: ["sh", "-c", "echo up; exec sleep 623"] }, forever);
      await reader(talk)("up");
      await scene.close(own);
      await expect(talk.wait()).rejects.toEqual(boundary("gone"));
    });
  });
}
