/**
 * What a command writes, both streams, within its request's caps. Invariant: past `maxReadBytes` of both together its end is asked
 * for once; what still comes is read and dropped.
 */
import type { ExecRequest, ExecResult } from "@rolldeck/contracts/ports/sandbox";
import { OutputCollector } from "./capped-output.ts";

const defaultMaxOutputBytes = 1024 * 1024;
const defaultMaxReadBytes = 1024 * 1024 * 1024;

export class CommandOutput {
  readonly #streams: Readonly<Record<"stdout" | "stderr", OutputCollector>>;
  readonly #maxReadBytes: number;
  readonly #onFlood: () => void;
  #readBytes = 0;

  constructor(
    {
      maxOutputBytes = defaultMaxOutputBytes,
      maxReadBytes = defaultMaxReadBytes,
    }: Pick<ExecRequest, "maxOutputBytes" | "maxReadBytes">,
    onFlood: () => void,
  ) {
    this.#streams = { stdout: new OutputCollector(maxOutputBytes), stderr: new OutputCollector(maxOutputBytes) };
    this.#maxReadBytes = maxReadBytes;
    this.#onFlood = onFlood;
  }

  /** Takes a copy. */
  take(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    this.#streams[stream].push(bytes);
    const before = this.#readBytes;
    this.#readBytes += bytes.length;
    if (before <= this.#maxReadBytes && this.#readBytes > this.#maxReadBytes) this.#onFlood();
  }

  result(): Pick<ExecResult, "stdout" | "stderr"> {
    return { stdout: this.#streams.stdout.result(), stderr: this.#streams.stderr.result() };
  }
}
