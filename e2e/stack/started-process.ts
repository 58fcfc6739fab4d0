/** One of our server apps from source, in a process of its own. Ends only what it started. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";

export interface StartedProcess {
  readonly pid: number;
  /** SIGTERM, and SIGKILL when it does not end within 12 s. */
  stop(): Promise<void>;
}

/** @param options.script relative to the repository's root */
export function startProcess(options: {
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onLine: (line: string) => void;
}): StartedProcess {
  const root = path.resolve(import.meta.dirname, "../..");
  const child = spawn(process.execPath, ["--import", "tsx", path.join(root, options.script)], {
    cwd: root,
    env: { ...process.env, ROLLDECK_ROOT: root, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", options.onLine);
  return {
    pid: child.pid ?? 0,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const kill = setTimeout(() => child.kill("SIGKILL"), 12_000);
      await ended;
      clearTimeout(kill);
    },
  };
}
