/** A program of a sandbox that is talked to while it runs. */
import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import type { Entered } from "./enter-sandbox.ts";

/** @param stillThere throws when the sandbox went away */
export function enteredProcess(
  entered: Entered,
  hasTerminal: boolean,
  stillThere: () => Promise<void>,
): SandboxProcess {
  const { child, stdin, stdout, stderr, ended } = entered;
  stdout.on("error", () => {});
  stderr.on("error", () => {});
  const write = (bytes: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      stdin.write(bytes, (error) => (error ? reject(closed(error)) : resolve()));
    });
  return {
    stdout,
    stderr,
    write,
    endStdin: () => new Promise<void>((resolve) => stdin.end(() => resolve())),
    wait: async () => {
      const { exitCode, started } = await ended;
      await stillThere();
      return { exitCode: started ? exitCode : 126 };
    },
    close: async () => {
      for (const stream of [stdin, stdout, stderr]) stream.destroy();
      child.unref();
    },
    ...(hasTerminal && {
      resize: async (columns: number, rows: number) => {
        const terminal = await terminalOf(child.pid ?? 0);
        if (terminal !== null) await setSize(terminal, columns, rows);
      },
    }),
  };
}

const closed = (cause: Error): BoundaryError =>
  new BoundaryError("sandbox", "unavailable", "the command's input is closed", { cause });

/** The terminal that `script` made for its child. */
async function terminalOf(pid: number): Promise<string | null> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "latin1").catch(() => "");
  const path = await readlink(`/proc/${children.trim().split(" ")[0]}/fd/0`).catch(() => "");
  return /^\/dev\/pts\/\d+$/.test(path) ? path : null;
}

/** A program that ended meanwhile has no terminal whose size mattered. */
function setSize(terminal: string, columns: number, rows: number): Promise<void> {
  return new Promise((resolve) => {
    execFile("stty", ["-F", terminal, "rows", String(rows), "columns", String(columns)], () => resolve());
  });
}
