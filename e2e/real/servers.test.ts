/** Where a stack keeps its data and its queue, and that it starts, is refused, ends and goes on as a person expects. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { createPool } from "@rolldeck/db/connect";
import { startTestPostgres } from "@rolldeck/db/testing/postgres";
import { startRedis } from "@rolldeck/queue/testing/redis";
import { afterEach, expect, test } from "vitest";
import { checkLog } from "../chaos/check-log.ts";
import { root } from "./command-line.ts";
import { isAlive, processTree, type SystemProcess } from "./processes.ts";
import { type RealStack, startRealStack } from "./real-stack.ts";
import { tinyConfig } from "./tiny-run.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(options: Parameters<typeof startRealStack>[0]): Promise<RealStack> {
  const stack = await startRealStack(options);
  closers.push(() => stack.stop());
  return stack;
}

function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-servers-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A start that is to be refused: how it ended and what it said. */
async function refusedStart(args: readonly string[]): Promise<{ code: number | null; said: string }> {
  const child = spawn(process.execPath, [path.join(root, "apps/cli/bin/start.mjs"), "--no-demo", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  const closed = once(child, "close");
  const said = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  return { code: child.exitCode, said: said.join("") };
}

async function busyPort(): Promise<number> {
  const server: Server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => server.close());
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

test("Redis as the queue, a busy port, a second start, Ctrl-C and kill −9 in the midst of a run, and on again", async () => {
  const redis = await startRedis();
  closers.push(() => redis.remove());
  const port = await busyPort();
  const dataFolder = newFolder();
  const options = {
    dataFolder,
    args: ["--redis-url", redis.url, "--port", String(port)],
    // What other programs use is none of our business.
    env: { DATABASE_URL: "postgresql://nobody:nothing@127.0.0.1:9/none", REDIS_URL: "redis://127.0.0.1:9" },
  };
  const first = await start(options);
  expect(Number(new URL(first.url).port)).toBeGreaterThan(port);
  expect(first.lines.join("\n")).toContain(`port ${port} is busy`);
  expect(await first.rolldeck.getSystem()).toMatchObject({ database: { kind: "embedded" }, queue: { kind: "redis" } });

  const second = await refusedStart(["--data-dir", dataFolder, "--port", "0"]);
  expect(second).toMatchObject({ code: 1, said: expect.stringContaining(`already running at ${first.url}`) });

  const { runId } = await first.rolldeck.launchRun(tinyConfig(10));
  await first.until("it trains", async () => (await first.rolldeck.getRun(runId)).step > 0);
  const tree = processTree(first.pid);
  const isPostgres = ({ commandLine }: SystemProcess): boolean => commandLine.includes("postgres");
  expect(tree.some(isPostgres)).toBe(true);
  await first.pool.end();
  // As a terminal does it: everything in the foreground hears it, and npm passes it on once more.
  process.kill(-first.pid, "SIGINT");
  process.kill(first.pid, "SIGINT");
  const left = (all: SystemProcess[]) => all.filter(({ pid }) => isAlive(pid)).map(({ commandLine }) => commandLine);
  await expect.poll(() => left(tree), { timeout: 15_000, interval: 100 }).toEqual([]);
  expect(first.lines.join("\n")).not.toMatch(/did not stop cleanly|starting it again/);

  const again = await start(options);
  const before = (await again.rolldeck.getRun(runId)).step;
  await again.until("it goes on", async () => (await again.rolldeck.getRun(runId)).step > before);
  // Nobody is left to tell the others: they notice. Postgres stays, and the next start takes it over.
  const orphans = processTree(again.pid).filter((each) => !isPostgres(each));
  await again.pool.end();
  process.kill(again.pid, "SIGKILL");
  await expect.poll(() => left(orphans), { timeout: 20_000, interval: 100 }).toEqual([]);

  const last = await start(options);
  expect(await last.ended(runId)).toBe("completed");
  expect(await checkLog(last.pool, runId)).toEqual([]);
});

test("a Postgres of one's own is used when it is empty or ours, and left alone when it is neither", async () => {
  const server = await startTestPostgres();
  const admin = createPool(server.url("postgres"), { max: 1 });
  closers.push(() => admin.end());
  await admin.query("create database foreign_one");
  await admin.query("create database empty_one");
  const foreign = createPool(server.url("foreign_one"), { max: 1 });
  closers.push(() => foreign.end());
  await foreign.query("create table customers (id int primary key)");

  const dataFolder = newFolder();
  const refused = await refusedStart([
    "--data-dir",
    dataFolder,
    "--port",
    "0",
    "--database-url",
    server.url("foreign_one"),
  ]);
  expect(refused.code).toBe(1);
  expect(refused.said).toMatch(/customers.*empty database/s);
  const { rows } = await foreign.query("select tablename from pg_tables where schemaname = 'public'");
  expect(rows).toEqual([{ tablename: "customers" }]);

  const nowhere = await refusedStart([
    "--data-dir",
    dataFolder,
    "--database-url",
    "postgresql://u:pw-canary@127.0.0.1:9/x",
  ]);
  expect(nowhere).toMatchObject({ code: 1, said: expect.stringContaining("database does not answer") });
  expect(nowhere.said).not.toContain("pw-canary");
  const wrong = await refusedStart(["--data-dir", dataFolder, "--database-url", "mysql://127.0.0.1/x"]);
  expect(wrong).toMatchObject({ code: 1, said: expect.stringContaining("--database-url: must look like") });

  const stack = await start({ dataFolder, args: ["--database-url", server.url("empty_one")] });
  expect(await stack.rolldeck.getSystem()).toMatchObject({
    database: { kind: "external" },
    queue: { kind: "postgres" },
  });
  expect(processTree(stack.pid).some(({ commandLine }) => commandLine.includes("bin/postgres"))).toBe(false);
  const { runId } = await stack.rolldeck.launchRun(tinyConfig(2));
  expect(await stack.ended(runId)).toBe("completed");
  expect(await checkLog(stack.pool, runId)).toEqual([]);
});
