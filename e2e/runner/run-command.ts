/** Runs one command of a suite with a time limit; the whole process group ends with it. */
import { spawn } from "node:child_process";

export interface CommandEnd {
  readonly code: number | null;
  readonly timedOut: boolean;
  /** What it wrote to either stream, where it was kept; else "". */
  readonly output: string;
}

export interface CommandOptions {
  readonly cwd: string;
  readonly env?: Record<string, string>;
  readonly limitMs: number;
  /** Its output is returned and not shown: of commands that run beside each other. */
  readonly keepOutput?: boolean;
}

export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const stream = options.keepOutput ? "pipe" : "inherit";
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", stream, stream],
      detached: true,
    });
    const kept: string[] = [];
    for (const each of [child.stdout, child.stderr])
      each?.setEncoding("utf8").on("data", (text: string) => kept.push(text));
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, options.limitMs);
    child.once("error", (error) => {
      process.stdout.write(`${command}: ${error.message}\n`);
      clearTimeout(timer);
      resolve({ code: -1, timedOut: false, output: error.message });
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, timedOut, output: kept.join("") });
    });
  });
}
