/**
 * Commands of the task's own inside a sandbox. Invariants: they find their programs in the system's folders alone, whatever the
 * agent put first in PATH; one that fails says what it printed.
 */

import { tailWithin } from "@rolldeck/agent/core/cut-text";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { CappedOutput, ExecRequest, ExecResult, Sandbox } from "@rolldeck/contracts/ports/sandbox";

/** Of our own commands; a task's scripts have the image's. */
export const systemPath = "/usr/sbin:/usr/bin:/sbin:/bin";
const maxShown = 2000;

export const textOf = ({ head, gapBytes, tail }: CappedOutput): string => {
  const decoder = new TextDecoder();
  const gap = gapBytes === 0 ? "" : `\n[… ${gapBytes} bytes left out …]\n`;
  return `${decoder.decode(head)}${gap}${decoder.decode(tail)}`;
};

/** The end of what it printed, for messages. */
export function lastWords({ stdout, stderr }: Pick<ExecResult, "stdout" | "stderr">): string {
  const text = `${textOf(stdout)}\n${textOf(stderr)}`.trim();
  return text.length <= maxShown ? text : `…${tailWithin(text, maxShown)}`;
}

export interface ScriptOptions {
  /** Absent = the sandbox's own. */
  readonly user?: string;
  readonly timeoutMs?: number;
  readonly arguments?: readonly string[];
}

/**
 * A script of ours, run by the system's shell.
 * @returns what it printed @throws BoundaryError("sandbox", "script_failed") when it does not end well
 */
export async function runScript(
  sandbox: Sandbox,
  script: string,
  what: string,
  options: ScriptOptions,
  signal: AbortSignal,
): Promise<string> {
  const request: ExecRequest = {
    command: [
      "/bin/sh",
      "-c",
      `task_path=$PATH; PATH=${systemPath}; export PATH\n${script}`,
      "sh",
      ...(options.arguments ?? []),
    ],
    cwd: "/",
    timeoutMs: options.timeoutMs ?? 60_000,
    ...(options.user === undefined ? {} : { user: options.user }),
  };
  const result = await sandbox.exec(request, signal);
  if (result.exitCode === 0) return textOf(result.stdout);
  const how = result.timedOut ? `was not done after ${request.timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
  throw new BoundaryError("sandbox", "script_failed", `${what} ${how}: ${lastWords(result)}`, { retryable: true });
}

/** Distinct users, where undefined is the sandbox's own. */
export const distinct = (users: readonly (string | null | undefined)[]): (string | undefined)[] => [
  ...new Set(users.map((user) => user ?? undefined)),
];
