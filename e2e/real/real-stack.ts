/** The product as `npm start` runs it, without pages, with its processes and its database in reach. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endedRunStatuses, type RunStatus } from "@rolldeck/contracts/lifecycle";
import { createPool, type Pool } from "@rolldeck/db/connect";
import { type StartedStack, startStack } from "../stack/started-stack.ts";
import { root } from "./command-line.ts";
import { isAlive, type KillablePart, processOf } from "./processes.ts";

export interface RealStack extends StartedStack {
  readonly pool: Pool;
  /** What the supervisor printed so far; sign-in codes left out. */
  readonly lines: readonly string[];
  /** kill −9, and nothing else. @returns the process that is gone */
  kill(part: KillablePart): Promise<number>;
  /** The part runs as another process than `before`. */
  restarted(part: KillablePart, before: number): Promise<void>;
  value(sql: string, parameters?: readonly unknown[]): Promise<unknown>;
  until<T>(what: string, look: () => Promise<T>, limitMs?: number): Promise<NonNullable<T>>;
  /** The status that the run ended with. */
  ended(runId: string, limitMs?: number): Promise<RunStatus>;
}

export async function startRealStack(options: {
  readonly only?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly dataFolder?: string;
}): Promise<RealStack> {
  const lines: string[] = [];
  const stack = await startStack({
    root,
    args: ["--no-demo", "--only", options.only ?? "api,worker,gpu-worker", ...(options.args ?? [])],
    env: { ...options.env },
    dataFolder: options.dataFolder,
    onLine: (line) => lines.push(line),
  });
  const pool = createPool(databaseUrlOf(stack.pid), { max: 4, applicationName: "test" });
  const until: RealStack["until"] = async (what, look, limitMs = 60_000) => {
    for (const end = performance.now() + limitMs; performance.now() < end; await sleep(50)) {
      // While a server restarts a look fails; the next one tells.
      const found = await look().catch(() => null);
      if (found !== null && found !== undefined && found !== false) return found;
    }
    const { rows } = await pool.query("select id, status, reason, step, wake, handled_wake, boot from runs");
    throw new Error(`not within ${limitMs / 1000} s: ${what}; ${JSON.stringify({ rows, lines: lines.slice(-12) })}`);
  };
  const value: RealStack["value"] = async (sql, parameters = []) => {
    const { rows } = await pool.query({ text: sql, values: [...parameters], rowMode: "array" });
    return rows[0]?.[0];
  };
  return {
    ...stack,
    pool,
    lines,
    value,
    until,
    kill: async (part) => {
      const pid = await until(`${part} runs`, async () => processOf(stack.pid, part));
      process.kill(pid, "SIGKILL");
      await until(`${part} is gone`, async () => !isAlive(pid));
      return pid;
    },
    restarted: async (part, before) => {
      await until(`${part} is started again`, async () => {
        const pid = processOf(stack.pid, part);
        return pid !== null && pid !== before;
      });
    },
    ended: (runId, limitMs = 90_000) =>
      until(
        "the run ends",
        async () => {
          const { status } = await stack.rolldeck.getRun(runId);
          return endedRunStatuses.includes(status) ? status : null;
        },
        limitMs,
      ),
    stop: async () => {
      if (!pool.ended) await pool.end();
      await stack.stop();
    },
  };
}

/** Where the servers got it from: the environment that the supervisor gave the API. */
function databaseUrlOf(supervisor: number): string {
  const api = processOf(supervisor, "api");
  const found = readFileSync(`/proc/${api}/environ`, "utf8")
    .split("\0")
    .find((entry) => entry.startsWith("ROLLDECK_DATABASE_URL="));
  if (found === undefined) throw new Error("the API has no database address");
  return found.slice(found.indexOf("=") + 1);
}

export const gpuWorkerKeyOf = (dataFolder: string): string =>
  readFileSync(path.join(dataFolder, "secrets/gpu-worker-key"), "utf8").trim();
