/**
 * A sandbox that is a folder of this machine: real programs, no isolation at all. For tests of what tasks do inside sandboxes with
 * git and shells; what isolates is tested where it lives.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { CappedOutput, ExecRequest, ExecResult, Sandbox } from "@rolldeck/contracts/ports/sandbox";

/** @param workdir absolute path of a folder of the test's own */
export function localSandbox(workdir: string): Sandbox {
  const refuse = (): never => {
    throw new Error("a local sandbox has no such thing");
  };
  return {
    id: "sbx_local000000000000000",
    runtime: "local",
    workdir,
    exec: (request) => execute(request, workdir),
    spawn: refuse,
    killAll: async () => {},
    readFile: async (path) => readFileSync(path),
    writeFile: async (path, bytes) => {
      mkdirSync(dirname(path), { recursive: true });
      rmSync(path, { force: true });
      writeFileSync(path, bytes);
    },
    putArchive: refuse,
    getArchive: refuse,
  };
}

function execute(request: ExecRequest, workdir: string): Promise<ExecResult> {
  const [program = "", ...words] = request.command;
  const child = spawn(program, words, {
    cwd: request.cwd ?? workdir,
    env: { PATH: process.env.PATH, HOME: "/nonexistent", ...request.environment },
    detached: true,
  });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on("data", (bytes: Buffer) => stdout.push(bytes));
  child.stderr.on("data", (bytes: Buffer) => stderr.push(bytes));
  child.stdin.on("error", () => {});
  child.stdin.end(request.stdin);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }, request.timeoutMs);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (exitCode) => {
      clearTimeout(timer);
      resolve({
        exitCode: timedOut ? null : exitCode,
        timedOut,
        flooded: false,
        outOfMemory: false,
        stdout: capped(stdout, request.maxOutputBytes),
        stderr: capped(stderr, request.maxOutputBytes),
        durationMs: 1,
      });
    });
  });
}

function capped(chunks: readonly Buffer[], most = 1024 * 1024): CappedOutput {
  const all = Buffer.concat(chunks);
  if (all.length <= most) return { head: all, gapBytes: 0, tail: new Uint8Array(), bytes: all.length };
  const half = Math.floor(most / 2);
  return {
    head: all.subarray(0, half),
    gapBytes: all.length - 2 * half,
    tail: all.subarray(all.length - half),
    bytes: all.length,
  };
}
