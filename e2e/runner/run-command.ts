/** Runs one command of a suite with its output shown and a time limit; the whole process group ends with it. */
import { spawn } from "node:child_process";

export interface CommandEnd {
  readonly code: number | null;
  readonly timedOut: boolean;
}

export function runCommand(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: Record<string, string>; readonly limitMs: number },
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["ignore", "inherit", "inherit"],
      detached: true,
    });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, options.limitMs);
    child.once("error", (error) => {
      process.stdout.write(`${command}: ${error.message}\n`);
      clearTimeout(timer);
      resolve({ code: -1, timedOut: false });
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, timedOut });
    });
  });
}
