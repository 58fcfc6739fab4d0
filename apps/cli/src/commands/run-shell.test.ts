import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import type { SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import { type ShellServer, startShellServer } from "@rolldeck/realtime/testing/shell-server";
import { afterEach, expect, test } from "vitest";
import { runShell } from "./run-shell.ts";

let server: ShellServer | null = null;
afterEach(async () => {
  await server?.close();
  server = null;
});

/** A process of this machine, behind pipes. */
function local(script: string, onByte: (count: number) => void = () => undefined): SandboxProcess {
  const child = spawn("/bin/sh", ["-c", script]);
  const closed = once(child, "close");
  child.stdin.on("error", () => undefined);
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    write: async (bytes) => {
      onByte(bytes.length);
      await new Promise<void>((resolve) => child.stdin.write(bytes, () => resolve()));
    },
    endStdin: async () => void child.stdin.end(),
    wait: async () => {
      const [code] = await closed;
      return { exitCode: typeof code === "number" ? code : null };
    },
    close: async () => void child.kill("SIGKILL"),
  };
}
const serve = async (process: SandboxProcess) => {
  server = await startShellServer(async () => ({
    process,
    objection: async () => null,
    leave: () => process.close(),
  }));
  return { url: server.url, token: "t", runId: "01kv8r7q0000abcdefghijkmnp", sandboxId: `sbx_${"a".repeat(20)}` };
};
const nowhere = () => new Writable({ write: (_bytes, _encoding, done) => done() });

test("a pipe of more than may be under way at once reaches the sandbox whole", async () => {
  const bytes = 5 * 1024 * 1024;
  let written = 0;
  const to = await serve(local(`head -c ${bytes} | cksum; exit 7`, (count) => (written += count)));
  const input = new PassThrough();
  let said = "";
  const output = new Writable({
    write: (piece, _encoding, done) => {
      said += String(piece);
      done();
    },
  });
  // As fast as it is read.
  (async () => {
    for (let sent = 0; sent < bytes; sent += 65_536)
      if (!input.write(Buffer.alloc(65_536, 120))) await once(input, "drain");
  })();
  expect(await runShell({ ...to, input, output, notes: nowhere() })).toBe(7);
  expect(said).toContain(` ${bytes}\n`);
  expect(written).toBe(bytes);
});

test("whoever stops reading the output has left: no error, and the shell ends", async () => {
  const to = await serve(local("yes"));
  let taken = 0;
  const output = new Writable({
    write: (piece, _encoding, done) => {
      taken += piece.length;
      done(taken > 100_000 ? Object.assign(new Error("write EPIPE"), { code: "EPIPE" }) : null);
    },
  });
  let noted = "";
  const notes = new Writable({
    write: (piece, _encoding, done) => {
      noted += String(piece);
      done();
    },
  });
  expect(await runShell({ ...to, input: new PassThrough(), output, notes })).toBe(0);
  expect(noted).not.toContain("EPIPE");
});
