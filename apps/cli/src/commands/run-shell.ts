/** This terminal as the terminal of a shell in a sandbox. It is left as it was found, whatever ends the shell. */
import { ShellConnection } from "@rolldeck/realtime/client/shell-connection";

/** Ctrl-], as telnet has it: leaves the shell. */
const leaveByte = 0x1d;

export interface RunShellOptions {
  readonly url: string;
  readonly token: string;
  readonly runId: string;
  readonly sandboxId: string;
  readonly input?: NodeJS.ReadStream;
  readonly output?: NodeJS.WriteStream;
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
    };
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
        if (exitCode === null) notes.write(`\r\nrolldeck: ${reason}\n`);
        resolve(exitCode ?? (reason === "left" ? 0 : 1));
      },
    });
  });
}
