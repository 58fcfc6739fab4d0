/** Commands that no kernel would start, in the same words whichever runtime is asked, and what a command says that never began. */
import type { ExecRequest, ExecResult } from "@rolldeck/contracts/ports/sandbox";

/** Of one argument or variable, in bytes: the kernel's limit, without its end. */
const maxArgument = 131_071;

/** Why no program can be started with these words; null when one can. */
export function unfitReason({
  command,
  environment,
  cwd,
}: Pick<ExecRequest, "command" | "environment" | "cwd">): string | null {
  if (command.length === 0) return "no command";
  const words = [...command, ...Object.entries(environment ?? {}).map((pair) => pair.join("=")), cwd ?? ""];
  if (words.some((word) => word.includes("\0"))) return "an argument holds a zero byte";
  if (words.some((word) => Buffer.byteLength(word) > maxArgument)) return "argument list too long";
  return null;
}

/** As a shell tells it: on stderr, with 126 (can't be run) or 127 (is not there). */
export function neverBegan(exitCode: 126 | 127, reason: string, durationMs = 0): ExecResult {
  const none = new Uint8Array(0);
  const text = new TextEncoder().encode(`${reason.trim()}\n`);
  return {
    exitCode,
    timedOut: false,
    flooded: false,
    outOfMemory: false,
    stdout: { head: none, gapBytes: 0, tail: none, bytes: 0 },
    stderr: { head: text, gapBytes: 0, tail: none, bytes: text.length },
    durationMs,
  };
}
