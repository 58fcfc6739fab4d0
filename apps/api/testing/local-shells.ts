/**
 * A runtime whose only sandbox is this machine: a shell in it is a real process behind pipes. It shows how shells are carried, not how
 * they are kept apart; that is the runtimes' own test.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox, SandboxProcess, SandboxRuntime, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";

export interface LocalShells {
  readonly runtime: SandboxRuntime;
  /** Sizes that terminals were given, in order. */
  readonly sizes: string[];
  /** Processes that were started and did not end. */
  running(): number;
  /** A command begins, but whoever starts it hears of it only once this is let go. @returns what lets go */
  holdStarts(): () => void;
  /** A new size is taken up only once this is let go. @returns what lets go */
  holdSizes(): () => void;
  /** From now on there is no sandbox of this id. */
  lose(id: string): void;
}

export function localShells(): LocalShells {
  const lost = new Set<string>();
  const running = new Set<number>();
  const sizes: string[] = [];
  let held: Promise<void> = Promise.resolve();
  let heldSizes: Promise<void> = Promise.resolve();
  const takeSize = (size: string): Promise<void> => {
    sizes.push(size);
    return heldSizes;
  };
  const refuse = (): never => {
    throw new BoundaryError("sandbox", "refused", "this runtime opens nothing");
  };
  const sandbox = (id: string): Sandbox => ({
    id,
    runtime: "docker",
    workdir: "/",
    spawn: async (request, signal) => {
      if (lost.has(id)) throw new BoundaryError("sandbox", "gone", `no sandbox ${id}`);
      const process = localProcess(request, running, takeSize);
      // As in a container: a start that is given up on does not end the process.
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        void held.then(resolve);
      });
      return process;
    },
    exec: refuse,
    killAll: refuse,
    readFile: refuse,
    writeFile: refuse,
    putArchive: refuse,
    getArchive: refuse,
  });
  return {
    sizes,
    running: () => running.size,
    holdStarts: () => {
      let letGo = () => {};
      held = new Promise((resolve) => {
        letGo = resolve;
      });
      return letGo;
    },
    holdSizes: () => {
      let letGo = () => {};
      heldSizes = new Promise((resolve) => {
        letGo = resolve;
      });
      return letGo;
    },
    lose: (id) => lost.add(id),
    runtime: {
      name: "docker",
      isolation: "none",
      limits: [],
      ailment: async () => null,
      open: refuse,
      attach: async (id) => {
        if (lost.has(id)) throw new BoundaryError("sandbox", "gone", `no sandbox ${id}`);
        return sandbox(id);
      },
      renew: async (ids) => new Set(ids),
      close: async () => undefined,
      list: async () => [],
      disconnect: async () => undefined,
    },
  };
}

function localProcess(
  request: SpawnRequest,
  running: Set<number>,
  takeSize: (size: string) => Promise<void>,
): SandboxProcess {
  const [program = "", ...rest] = request.command;
  // In a session of its own, as in a sandbox: a shell that hangs up tells its whole group.
  // Without a home: what this machine's people let their shells begin with has no place here.
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", PS1: "", ...request.environment };
  const child = spawn(program, rest, { env, detached: true });
  const pid = child.pid ?? 0;
  running.add(pid);
  if (request.tty) void takeSize(`${request.tty.columns}x${request.tty.rows}`);
  const closed = once(child, "close").then(([code]) => {
    running.delete(pid);
    return typeof code === "number" ? code : null;
  });
  child.stdin.on("error", () => undefined);
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    write: (bytes) =>
      new Promise((resolve, reject) => child.stdin.write(bytes, (error) => (error ? reject(error) : resolve()))),
    endStdin: async () => {
      child.stdin.end();
    },
    ...(request.tty ? { resize: (columns: number, rows: number) => takeSize(`${columns}x${rows}`) } : {}),
    wait: async () => ({ exitCode: await closed }),
    // As in a container: the streams are let go, the process lives on.
    close: async () => {
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}
