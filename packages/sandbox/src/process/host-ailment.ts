/** Can this machine make namespace sandboxes? Asked by making the smallest one. */
import { type ExecFileException, execFile } from "node:child_process";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { FilterArchitecture } from "./seccomp-filter.ts";

export const hostArchitecture = (): FilterArchitecture | null =>
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64") ? process.arch : null;

const nobody = 65_534;
const checkMs = 10_000;

/**
 * Null when it can, else why not and what to do.
 * @throws BoundaryError("sandbox", "unavailable", retryable) when the machine is too busy or too full to tell: that is no answer
 */
export async function hostAilment(limitMs: number = checkMs): Promise<string | null> {
  const run = (command: readonly string[]) => outcome(command, limitMs);
  if (hostArchitecture() === null) return "process sandboxes need Linux on x64 or arm64; use Docker for sandboxes here";
  const isRoot = process.getuid?.() === 0;
  for (const program of ["bwrap", "nsenter", ...(isRoot ? ["setpriv"] : [])]) {
    if ((await run([program, "--version"])) !== null)
      return `process sandboxes need ${program}, which is not installed (Debian: apt-get install bubblewrap util-linux)`;
  }
  if ((await run(["/bin/bash", "-c", "((BASH_VERSINFO[0] >= 4))"])) !== null)
    return "process sandboxes need /bin/bash 4 or later, which is not installed";
  const become = isRoot ? ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] : [];
  const smallest = [
    "bwrap",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
  ];
  const trouble = await run([...become, ...smallest, "true"]);
  if (trouble === null) return null;
  return `this machine does not let an unprivileged user make namespaces (${trouble}); use Docker for sandboxes here`;
}

/** Null when it ended well, else what it said. @throws BoundaryError */
function outcome([program = "", ...rest]: readonly string[], limitMs: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    execFile(program, rest, { timeout: limitMs, cwd: "/" }, (error, _stdout, stderr) => {
      if (error === null) resolve(null);
      else if (isAnswer(error)) resolve((stderr.trim() || error.message).slice(0, 300));
      else reject(noAnswer(program, error));
    });
  });
}

/** An exit code, or no such program; not one that was ended, or could not be started for want of memory or files. */
const isAnswer = ({ code }: ExecFileException): boolean =>
  typeof code === "number" || code === "ENOENT" || code === "EACCES";

const noAnswer = (program: string, cause: ExecFileException): BoundaryError =>
  new BoundaryError(
    "sandbox",
    "unavailable",
    `the machine is too busy to tell whether ${program} works: ${cause.message}`,
    {
      cause,
      retryable: true,
    },
  );
