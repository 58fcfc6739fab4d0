/** The `rolldeck` command as a person types it, in a process of its own. */
import { spawn } from "node:child_process";
import path from "node:path";
import { text } from "node:stream/consumers";

export const root = path.resolve(import.meta.dirname, "../..");

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param options.input given on standard input @param options.limitMs it is killed after this */
export async function rolldeck(
  args: readonly string[],
  options: { readonly input?: string; readonly env?: Readonly<Record<string, string>>; readonly limitMs?: number } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [path.join(root, "apps/cli/bin/rolldeck.mjs"), ...args], {
    cwd: root,
    env: { ...process.env, ...options.env },
    stdio: "pipe",
    timeout: options.limitMs ?? 120_000,
    killSignal: "SIGKILL",
  });
  const code = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  child.stdin.end(options.input ?? "");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
}
