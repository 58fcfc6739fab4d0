/** A failure that a person can act on: what happened, and per field what to do. */
import type { Problem } from "@rolldeck/contracts/api/problems";

export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  constructor(
    message: string,
    readonly problem: Problem | null = null,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  /** Message, then one line per field. */
  text(): string {
    const lines = (this.problem?.errors ?? []).map(
      (error) => `  ${error.path || "(root)"}: ${error.message}${error.fix === undefined ? "" : ` — ${error.fix}`}`,
    );
    const request = this.problem === null ? [] : [`  request ${this.problem.requestId}`];
    return [this.message, ...lines, ...request].join("\n");
  }
}
