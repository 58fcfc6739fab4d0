/** Can this machine make namespace sandboxes? Asked by making the smallest one. */
import { execFile } from "node:child_process";
import type { FilterArchitecture } from "./seccomp-filter.ts";

export const hostArchitecture = (): FilterArchitecture | null =>
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64") ? process.arch : null;

const nobody = 65_534;
const checkMs = 10_000;

/** Null when it can, else why not and what to do. */
export async function hostAilment(): Promise<string | null> {
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

/** Null when it ended well. */
function run([program = "", ...rest]: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, rest, { timeout: checkMs, cwd: "/" }, (error, _stdout, stderr) => {
      resolve(error === null ? null : (stderr.trim() || error.message).slice(0, 300));
    });
  });
}
