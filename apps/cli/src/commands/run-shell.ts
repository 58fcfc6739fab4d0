/**
 * This terminal, or a pipe, as the terminal of a shell in a sandbox. It is left as it was found, whatever ends the shell. A pipe is
 * read no faster than the sandbox takes it, and whoever stops reading our output has left.
 */
import { ShellConnection } from "@rolldeck/realtime/client/shell-connection";

/** Ctrl-], as telnet has it: leaves the shell. */
const leaveByte = 0x1d;

/** A terminal has the rest; a pipe does not. */
export type ShellInput = NodeJS.ReadableStream & Partial<Pick<NodeJS.ReadStream, "isTTY" | "setRawMode">>;
export type ShellOutput = NodeJS.WritableStream & Partial<Pick<NodeJS.WriteStream, "columns" | "rows">>;

export interface RunShellOptions {
  readonly url: string;
  readonly token: string;
  readonly runId: string;
  readonly sandboxId: string;
  readonly input?: ShellInput;
  readonly output?: ShellOutput;
  /** For words about the shell. */
  readonly notes?: NodeJS.WritableStream;
}

/** Until it is over. @returns the shell's exit code; 1 where it did not end by itself */
export function runShell(options: RunShellOptions): Promise<number> {
  const { url, token, runId, sandboxId } = options;
  const { input = process.stdin, output = process.stdout, notes = process.stderr } = options;
  // A terminal that does not know its size says 0.
  const size = () => ({ columns: output.columns || 80, rows: output.rows || 24 });
  return new Promise((resolve) => {
    const onResize = () => connection.resize(size().columns, size().rows);
    const onInput = (bytes: Buffer) => {
      const leave = input.isTTY ? bytes.indexOf(leaveByte) : -1;
      if (leave !== 0) connection.write(leave < 0 ? bytes : bytes.subarray(0, leave));
      if (leave >= 0) connection.close();
      if (!connection.isFull) return;
      input.pause();
      void connection.drained().then(() => input.resume());
    };
    // Nobody reads on (`… | head`): that is leaving. Anything else is told.
    const onOutputError = (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") notes.write(`rolldeck: the output can't be written: ${error.message}\n`);
      connection.close();
    };
    output.on("error", onOutputError);
    // A pipe that ends is an end of file for the shell, too.
    const onInputEnd = () => connection.write(Uint8Array.of(4));
    const connection = new ShellConnection({
      ...{ url, token, asked: { runId, sandboxId, ...size() } },
      onOpen: () => {
        if (input.isTTY) notes.write(`shell in ${sandboxId}; Ctrl-] leaves it\n`);
        input.setRawMode?.(true);
        input.on("data", onInput);
        input.on("end", onInputEnd);
        output.on("resize", onResize);
        input.resume();
      },
      onOutput: (bytes) => new Promise((taken) => output.write(bytes, () => taken())),
      onEnd: ({ reason, exitCode }) => {
        input.off("data", onInput);
        input.off("end", onInputEnd);
        output.off("resize", onResize);
        input.setRawMode?.(false);
        input.pause();
        // Errors of what is still being written are no longer anybody's.
        output.off("error", onOutputError);
        output.on("error", () => undefined);
        if (exitCode === null) notes.write(`\r\nrolldeck: ${reason}\n`);
        resolve(exitCode ?? (reason === "left" ? 0 : 1));
      },
    });
  });
}
