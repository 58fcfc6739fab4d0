/**
 * Runs a program in a sandbox: a process of ours joins its control groups, becomes its user, joins its namespaces, takes on the
 * seccomp filter and then becomes the program. Invariants: nothing that a task or model wrote is in the environment or search
 * path of the steps that run outside; `started` tells a program that began from one that could not be.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import type { HeldRecord } from "./held-record.ts";
import { enterPath } from "./sandbox-view.ts";

export interface EnterRequest extends Pick<SpawnRequest, "command" | "cwd" | "environment" | "tty"> {
  /** It counts against the sandbox's limits; what ends a sandbox that is full must not. */
  readonly counted: boolean;
}

export interface Entered {
  readonly child: ChildProcess;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** How the program ended; false first: it never began. */
  readonly ended: Promise<{ readonly started: boolean; readonly exitCode: number | null }>;
}

/** Absolute: what runs outside is not looked for in anybody's search path. */
const hostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** $1 = files to join, $2 = most processes (or empty), then the command. For memory it goes before process 1. */
const outside =
  "echo 500 > /proc/self/oom_score_adj; " +
  'for file in $1; do echo $$ > "$file" || exit 125; done; [ -z "$2" ] || ulimit -u "$2"; shift 2; exec "$@"';
/** $1 = folder, then the command. A byte on 3 says that we are in. */
const inside = 'echo >&3; exec 3>&-; cd -- "$1" || exit 126; shift; exec "$@"';

function enterArguments(record: HeldRecord, request: EnterRequest): string[] {
  const { first, uid, cgroups, maxPids } = record;
  const joins = request.counted ? cgroups.joins : [];
  const limit = request.counted && cgroups.joins.length === 0 ? String(maxPids) : "";
  const become = uid === null ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
  const variables = Object.entries({ ...record.environment, ...request.environment })
    .filter(([name]) => /^[^=\0]+$/.test(name))
    .map(([name, value]) => `${name}=${value}`);
  return [
    ...["/bin/sh", "-c", outside, "sh", joins.join(" "), limit, ...become],
    ...["nsenter", "--target", String(first.pid), "--user", "--preserve-credentials"],
    ...["--mount", "--net", "--pid", "--ipc", "--uts", "--", enterPath],
    ...["/usr/bin/env", "-i", ...variables, "/bin/sh", "-c", inside, "sh", request.cwd ?? record.workdir],
    ...request.command,
  ];
}

export function enterSandbox(record: HeldRecord, request: EnterRequest): Entered {
  const { tty } = request;
  const plain = enterArguments(record, request);
  const [program = "", ...rest] = tty === undefined ? plain : withTerminal(plain, tty);
  const child = spawn(program, rest, {
    cwd: "/",
    env: { PATH: hostPath, LC_ALL: "C" },
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
  const { stdin, stdout, stderr } = child;
  const mark = child.stdio[3];
  if (stdin === null || stdout === null || stderr === null)
    throw new Error("a program was started without its streams");
  // Who is written to may be gone: its end is told elsewhere.
  stdin.on("error", () => {});
  let started = false;
  mark?.on("data", () => {
    started = true;
  });
  mark?.on("error", () => {});
  const marked = new Promise<void>((resolve) => mark?.once("close", () => resolve()));
  const ended = new Promise<{ started: boolean; exitCode: number | null }>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", async (code, signal) => {
      // Its byte may still be on its way; the stream is closed before the program begins.
      await Promise.race([marked, passed(markMs)]);
      resolve({ started, exitCode: code ?? (signal === null ? null : 128 + signalNumber(signal)) });
    });
  });
  ended.catch(() => {});
  return { child, stdin, stdout, stderr, ended };
}

const markMs = 2000;
const passed = (timeMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, timeMs).unref();
  });

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** `script` makes the terminal on the host; the program in the sandbox has it as its three streams. */
function withTerminal(command: readonly string[], { columns, rows }: { columns: number; rows: number }): string[] {
  const line = `stty rows ${rows} columns ${columns}; exec ${command.map(quoted).join(" ")}`;
  return ["script", "--quiet", "--return", "--flush", "--command", line, "/dev/null"];
}

const signalNumber = (name: NodeJS.Signals): number => constants.signals[name];
