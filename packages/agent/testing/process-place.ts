/**
 * A stand-in for a sandbox where only `spawn` matters: real processes of this machine, without any wall around them. For tests of what
 * talks to a process in a sandbox; never for code that is not our own.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** @returns what a sandbox has for `spawn`, and the processes that it started */
export function processPlace(): { readonly sandbox: Sandbox; readonly started: readonly Child[] } {
  const started: Child[] = [];
  const refuse = () => Promise.reject(new Error("only spawn works here"));
  const sandbox: Sandbox = {
    id: "sbx_00000000000000000000",
    runtime: "none",
    workdir: process.cwd(),
    exec: refuse,
    killAll: refuse,
    readFile: refuse,
    writeFile: refuse,
    putArchive: refuse,
    getArchive: refuse,
    spawn: async ({ command, environment, cwd }: SpawnRequest) => {
      const [file = "", ...args] = command;
      const child = spawn(file, args, { cwd, env: { ...process.env, ...environment }, stdio: "pipe" });
      started.push(child);
      await once(child, "spawn");
      return talkTo(child);
    },
  };
  return { sandbox, started };
}

function talkTo(child: Child): SandboxProcess {
  const ended = once(child, "close").then(([exitCode]) => ({
    exitCode: typeof exitCode === "number" ? exitCode : null,
  }));
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    write: async (bytes) => {
      if (!child.stdin.write(bytes)) await once(child.stdin, "drain");
    },
    endStdin: async () => {
      child.stdin.end();
    },
    wait: () => ended,
    close: async () => {
      child.stdin.destroy();
    },
  };
}
