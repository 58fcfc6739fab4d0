/** An ExecResult over the wire: figures in the answer, bytes on the channels (head, then tail). */
import type { CappedOutput, ExecResult } from "@rolldeck/contracts/ports/sandbox";
import type { Result } from "./methods.ts";
import type { Stream } from "./stream.ts";
import { unavailable } from "./wire-error.ts";

/** Serving side: sends what was kept, as the caller reads it, and answers the figures. */
export async function sendResult(stream: Stream, result: ExecResult): Promise<Result<"exec">> {
  await Promise.all([sendKept(stream, 1, result.stdout), sendKept(stream, 2, result.stderr)]);
  return { ...result, stdout: figures(result.stdout), stderr: figures(result.stderr) };
}

async function sendKept(stream: Stream, channel: 1 | 2, output: CappedOutput): Promise<void> {
  if (output.head.length > 0) await stream.write(channel, output.head);
  if (output.tail.length > 0) await stream.write(channel, output.tail);
}

const figures = ({ head, gapBytes, tail, bytes }: CappedOutput): Result<"exec">["stdout"] => ({
  headBytes: head.length,
  gapBytes,
  tailBytes: tail.length,
  bytes,
});

/** Calling side. @throws unavailable when the bytes are not those that the figures tell */
export function joinResult(answer: Result<"exec">, stdout: Uint8Array, stderr: Uint8Array): ExecResult {
  return { ...answer, stdout: joinKept(answer.stdout, stdout), stderr: joinKept(answer.stderr, stderr) };
}

function joinKept(told: Result<"exec">["stdout"], kept: Uint8Array): CappedOutput {
  if (kept.length !== told.headBytes + told.tailBytes) throw unavailable("output that did not come whole");
  return {
    head: kept.subarray(0, told.headBytes),
    gapBytes: told.gapBytes,
    tail: kept.subarray(told.headBytes),
    bytes: told.bytes,
  };
}
