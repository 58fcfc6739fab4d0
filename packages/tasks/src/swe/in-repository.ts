/**
 * Scripts of ours in an instance's repository. Invariants: they run with an environment of their own (nothing that an agent set
 * reaches them), find programs in the system's folders first, and git obeys no hook, attribute, alias or setting of a person.
 */
import { type Boundary, BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecResult, Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { lastWords } from "../harbor/in-sandbox.ts";

const path = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/opt/miniconda3/bin";

/** Attributes under which git takes and gives bytes as they are. */
export const rawAttributes = "* -text !eol -filter -ident !working-tree-encoding !diff !merge";

/** `g` is git as it is used here; `fail` ends with a message. */
const prelude = `
set -u
home=$(mktemp -d) || exit 3
trap 'rm -rf "$home"' EXIT
printf '[safe]\\n\\tdirectory = *\\n' > "$home/.gitconfig"
export HOME="$home" XDG_CONFIG_HOME="$home" LC_ALL=C GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true
export GIT_AUTHOR_NAME=base GIT_AUTHOR_EMAIL=base@example.org GIT_AUTHOR_DATE='2000-01-01T00:00:00 +0000'
export GIT_COMMITTER_NAME=base GIT_COMMITTER_EMAIL=base@example.org GIT_COMMITTER_DATE='2000-01-01T00:00:00 +0000'
g() {
  git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false \\
    -c core.autocrlf=false -c core.safecrlf=false -c core.fileMode=true -c core.symlinks=true -c core.ignoreCase=false \\
    -c core.excludesFile=/dev/null -c core.attributesFile=/dev/null -c core.quotePath=true -c core.sparseCheckout=false \\
    -c core.compression=1 -c gc.auto=0 -c commit.gpgSign=false -c advice.addEmbeddedRepo=false -c apply.whitespace=nowarn \\
    -c apply.ignoreWhitespace=no "$@"
}
fail() { printf '%s\\n' "$1" >&2; exit 3; }
`;

export interface RepositoryScript {
  readonly script: string;
  readonly arguments?: readonly string[];
  readonly timeoutMs: number;
  readonly maxOutputBytes?: number;
}

/** How it ended is the caller's to judge. @throws BoundaryError("sandbox") */
export function runInRepository(
  sandbox: Sandbox,
  { script, arguments: words = [], timeoutMs, maxOutputBytes }: RepositoryScript,
  signal: AbortSignal,
): Promise<ExecResult> {
  const command = ["/usr/bin/env", "-i", `PATH=${path}`, "/bin/sh", "-c", `${prelude}${script}`, "sh", ...words];
  return sandbox.exec(
    { command, cwd: "/", timeoutMs, ...(maxOutputBytes === undefined ? {} : { maxOutputBytes }) },
    signal,
  );
}

/** @throws BoundaryError at `boundary` that says what was seen when the script does not end well */
export async function mustRun(
  sandbox: Sandbox,
  run: RepositoryScript & { readonly what: string; readonly boundary: Boundary },
  signal: AbortSignal,
): Promise<ExecResult> {
  const result = await runInRepository(sandbox, run, signal);
  if (result.exitCode === 0) return result;
  const how = result.timedOut ? `was not done after ${run.timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
  const message = `${run.what} ${how}: ${lastWords(result)}`;
  throw new BoundaryError(run.boundary, "repository_failed", message, { retryable: result.timedOut });
}
