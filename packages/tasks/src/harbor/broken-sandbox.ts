/**
 * Whether an agent broke the sandbox that its work is graded in: no shell starts, nothing can be written, tests can't do their work.
 * Invariant: it is told only with proof. That a shell started and a folder was made is known of set-up; for everything else an
 * untouched sandbox of the same image does at the same time what the agent's does not, so that a full or broken machine is not
 * taken for the agent's doing.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { lastWords, systemPath } from "./in-sandbox.ts";

/** What people see on the rollout. */
export const brokenFlag = "broke its sandbox";

const timeoutMs = 60_000;
const probe = `PATH=${systemPath}; export PATH
mkdir -p /logs/verifier /tests && head -c 65536 /dev/zero > /logs/verifier/.writable && rm -f /logs/verifier/.writable`;

const noCommand = "no command can be run in it any more";
/** What is said where the shell, or what loads it, is gone or is no program: not where there is only no room for one more process. */
const noProgram = /no such file or directory|not found|permission denied|exec format/iu;

/**
 * Asked before anything that would be given up as lost for want of a shell, such as ending processes.
 * @throws BoundaryError("verifier", "no_shell"), BoundaryError("sandbox")
 */
export async function mustHaveShell(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const result = await sandbox.exec({ command: ["/bin/sh", "-c", "echo here"], cwd: "/", timeoutMs }, signal);
  const said = lastWords(result);
  if (said === "here" || (result.exitCode !== 0 && !noProgram.test(said))) return;
  throw new BoundaryError("verifier", "no_shell", `${noCommand}: ${said === "" ? "its shell says nothing" : said}`);
}

/** Why no verifier can work in it; null when one can. @throws BoundaryError("sandbox") for one that is gone or does not answer */
async function unusable(sandbox: Sandbox, signal: AbortSignal): Promise<string | null> {
  const command = ["/bin/sh", "-c", probe];
  const result = await sandbox.exec({ command, cwd: "/", user: "root", timeoutMs }, signal);
  if (result.exitCode === 0) return null;
  const words = lastWords(result);
  if (result.exitCode === 126 || result.exitCode === 127 || /^exec \/bin\/sh:/u.test(words)) return noCommand;
  const said = result.timedOut ? `not done after ${timeoutMs / 1000} s` : words;
  return `nothing can be written in it any more: ${said}`;
}

/**
 * @param open an untouched sandbox of the agent's image
 * @returns why; null when nothing shows that the agent broke it
 * @throws BoundaryError("sandbox")
 */
export async function whyBroken(
  sandbox: Sandbox,
  open: () => Promise<Sandbox>,
  signal: AbortSignal,
): Promise<string | null> {
  const here = await unusable(sandbox, signal);
  if (here === null) return null;
  return (await unusable(await open(), signal)) === null ? here : null;
}

/** Failures of a grading that a broken sandbox may be behind. Tests that run out of time did run. */
export function mayBeBroken(cause: unknown): cause is Error {
  if (cause instanceof SandboxFileError) return true;
  if (!(cause instanceof BoundaryError)) return false;
  if (cause.boundary === "verifier") return cause.code !== "timeout";
  return cause.boundary === "sandbox" && (cause.code === "script_failed" || isOfProgram(cause));
}

/** Of a program in the sandbox, or of the way to it: which, only another command tells. */
export const isOfProgram = (cause: unknown): cause is BoundaryError =>
  cause instanceof BoundaryError && cause.boundary === "sandbox" && cause.code !== "gone" && !cause.retryable;
