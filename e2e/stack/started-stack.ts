/**
 * The whole product as a person starts it: `npm start` in its own process group, with its own data folder and ports. Used by
 * benchmarks and walks that need everything real. Ends only what it started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Rolldeck } from "@rolldeck/client/rolldeck";
import { z } from "zod";

export interface StartedStack {
  readonly url: string;
  readonly token: string;
  readonly rolldeck: Rolldeck;
  readonly dataFolder: string;
  readonly pid: number;
  /** Seconds from spawn until the sign-in link was printed. */
  readonly urlS: number;
  stop(): Promise<void>;
}

const ServerFile = z.object({ pid: z.int(), url: z.string() });

/** Starts a clone's `npm start`; resolves once the API listens and the owner token is there. */
export async function startStack(options: {
  readonly root: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly dataFolder?: string;
  readonly onLine?: (line: string) => void;
  readonly limitMs?: number;
}): Promise<StartedStack> {
  const dataFolder = options.dataFolder ?? mkdtempSync(path.join(tmpdir(), "rolldeck-stack-"));
  chmodSync(dataFolder, 0o711);
  const startedAt = Date.now();
  const child = spawn(
    process.execPath,
    [
      path.join(options.root, "apps/cli/bin/start.mjs"),
      "--data-dir",
      dataFolder,
      "--port",
      "0",
      ...(options.args ?? []),
    ],
    { cwd: options.root, env: { ...process.env, ...options.env }, stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  const lines: string[] = [];
  let urlS = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter((part) => part.trim() !== "")) {
        lines.push(line);
        if (urlS === 0 && line.includes("/sign-in?code=")) urlS = (Date.now() - startedAt) / 1000;
        options.onLine?.(line.replace(/code=\S+/, "code=…"));
      }
    });
  }
  const found = await waitForServer(child, dataFolder, options.limitMs ?? 180_000, lines);
  return {
    ...found,
    rolldeck: new Rolldeck({ url: found.url, token: found.token }),
    dataFolder,
    pid: child.pid ?? -1,
    urlS,
    stop: async () => {
      await stopGroup(child);
      if (options.dataFolder === undefined) rmSync(dataFolder, { recursive: true, force: true });
    },
  };
}

async function waitForServer(
  child: ChildProcess,
  dataFolder: string,
  limitMs: number,
  lines: string[],
): Promise<{ url: string; token: string }> {
  const serverFile = path.join(dataFolder, "server.json");
  const tokenFile = path.join(dataFolder, "owner-token");
  const endsAt = Date.now() + limitMs;
  while (Date.now() < endsAt) {
    if (existsSync(serverFile) && existsSync(tokenFile)) {
      const { pid, url } = ServerFile.parse(JSON.parse(readFileSync(serverFile, "utf8")));
      // A supervisor that was killed leaves its own behind.
      if (pid === child.pid) return { url, token: readFileSync(tokenFile, "utf8").trim() };
    }
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await stopGroup(child);
  throw new Error(`the stack did not come up:\n${lines.slice(-20).join("\n")}`);
}

async function stopGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
  child.kill("SIGTERM");
  const pid = child.pid;
  const force = setTimeout(() => process.kill(-pid, "SIGKILL"), 30_000);
  await gone;
  clearTimeout(force);
}
