/**
 * The sandbox port over this process's own file system and plain child processes: no isolation at all, for tests that care about
 * what a tool does with the files and commands it asks for. Runtimes have tests of their own, in real containers.
 */
import { spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import {
  type CappedOutput,
  type ExecRequest,
  type ExecResult,
  type FileFailure,
  type Sandbox,
  SandboxFileError,
} from "@rolldeck/contracts/ports/sandbox";

/** @param environment of every command, besides PATH */
export function localSandbox(workdir: string, environment: Readonly<Record<string, string>> = {}): Sandbox {
  const notHere = (what: string): never => {
    throw new BoundaryError("sandbox", "refused", `a local sandbox has no ${what}`);
  };
  return {
    id: "sbx_00000000000000000000",
    runtime: "local",
    workdir,
    exec: (request, signal) => execLocally(request, { workdir, environment }, signal),
    readFile: async (path, { maxBytes }) => {
      const facts = await told(path, stat(path));
      if (facts.size > maxBytes) throw new SandboxFileError("too_large", path, `${path} has ${facts.size} bytes`);
      return told(path, readFile(path));
    },
    writeFile: (path, bytes, { mode }) => told(path, writeWhole(path, bytes, mode)),
    spawn: async () => notHere("spawn"),
    killAll: async () => notHere("killAll"),
    putArchive: async () => notHere("archives"),
    getArchive: async () => notHere("archives"),
  };
}

async function writeWhole(path: string, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const before = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  const beside = `${path}.new`;
  try {
    await writeFile(beside, bytes, { mode: mode ?? (before === null ? 0o644 : before.mode & 0o7777) });
    await rename(beside, path);
  } finally {
    await rm(beside, { force: true });
  }
}

const failures = new Map<string, FileFailure>([
  ["ENOENT", "not_found"],
  ["EISDIR", "is_directory"],
  ["ENOTDIR", "not_a_directory"],
  ["EACCES", "denied"],
  ["EPERM", "denied"],
  ["ENOSPC", "no_space"],
]);

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);

async function told<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const code = failures.get(String(codeOf(cause)));
    if (code === undefined) throw cause;
    throw new SandboxFileError(code, path, `${path}: ${code}`, { cause });
  }
}

function execLocally(
  { command, stdin, cwd, timeoutMs, maxOutputBytes = 1024 * 1024 }: ExecRequest,
  scene: { readonly workdir: string; readonly environment: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const startedAt = performance.now();
  const [program = "", ...args] = command;
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", ...scene.environment };
  const child = spawn(program, args, { cwd: cwd ?? scene.workdir, env, stdio: "pipe", timeout: timeoutMs, signal });
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const stdout = collect(child.stdout, maxOutputBytes);
  const stderr = collect(child.stderr, maxOutputBytes);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (exitCode) =>
      resolve({
        exitCode,
        timedOut: child.killed,
        flooded: false,
        outOfMemory: false,
        stdout: stdout(),
        stderr: stderr(),
        durationMs: performance.now() - startedAt,
      }),
    );
  });
}

function collect(stream: NodeJS.ReadableStream, maxBytes: number): () => CappedOutput {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => {
    const all = Buffer.concat(chunks);
    if (all.length <= maxBytes) return { head: all, gapBytes: 0, tail: new Uint8Array(), bytes: all.length };
    const half = maxBytes >> 1;
    return {
      head: all.subarray(0, half),
      gapBytes: all.length - 2 * half,
      tail: all.subarray(all.length - half),
      bytes: all.length,
    };
  };
}
