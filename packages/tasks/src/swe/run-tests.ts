/** One run of an instance's tests, as its script has it. Invariant: a log that was cut is no log. */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { type EvalScript, testPatchPath } from "./eval-script.ts";

/** Of the test command's output; more is no log, not a shorter one. */
const maxLogBytes = 32 * 1024 * 1024;
const scriptPath = "/var/tmp/rolldeck-eval.sh";

export interface TestRun {
  readonly log: Uint8Array;
  /** Why the log is none, of more output than is read; else null. */
  readonly tooLarge: string | null;
  /** Of the test command; null where only the log tells it, or it did not end. */
  readonly exitCode: number | null;
  /** Of the script. */
  readonly scriptExitCode: number | null;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
}

/** @throws BoundaryError("sandbox") */
export async function runTests(
  sandbox: Sandbox,
  script: EvalScript,
  { testPatch, timeoutMs }: { readonly testPatch: string; readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<TestRun> {
  const path = `${scriptPath}${sandbox.workdir.replaceAll("/", "_")}`;
  await sandbox.writeFile(testPatchPath, Buffer.from(testPatch), {}, signal);
  await sandbox.writeFile(path, Buffer.from(script.text), { mode: 0o755 }, signal);
  const result = await sandbox.exec(
    // One stream: traces of the shell and output of the tests stand in their order.
    {
      command: ["/bin/bash", "-c", 'exec /bin/bash "$1" 2>&1 < /dev/null', "bash", path],
      timeoutMs,
      maxOutputBytes: maxLogBytes,
    },
    signal,
  );
  const { stdout, exitCode, timedOut, outOfMemory, flooded, durationMs } = result;
  const isCut = (stdout.gapBytes > 0 || flooded) && !timedOut;
  const tooLarge = isCut ? `the tests printed ${stdout.bytes} bytes; at most ${maxLogBytes} are read` : null;
  const told = script.tellsExitCode && !timedOut ? exitCode : null;
  return { log: stdout.head, tooLarge, exitCode: told, scriptExitCode: exitCode, timedOut, outOfMemory, durationMs };
}
