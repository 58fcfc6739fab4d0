import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { makePassable } from "./postgres/server.ts";

let dataDir = "";
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-embedded-"));
  await makePassable(folder);
  dataDir = join(folder, "postgres");
});
afterAll(async () => {
  const left = await startEmbeddedPostgres({ dataDir });
  await left.stop();
  await rm(join(dataDir, ".."), { recursive: true, force: true });
});

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

test("data and password live on from start to start; a running server is adopted", async () => {
  const first = await startEmbeddedPostgres({ dataDir });
  expect(first.adopted).toBe(false);
  await query(first.url, "create table kept (n int); insert into kept values (7)");
  expect(await query(first.url, "show max_connections")).toEqual([{ max_connections: "200" }]);
  expect(await query(first.url, "show listen_addresses")).toEqual([{ listen_addresses: "127.0.0.1" }]);
  expect((await stat(join(dataDir, "password"))).mode & 0o777).toBe(0o600);

  const second = await startEmbeddedPostgres({ dataDir });
  expect(second).toMatchObject({ adopted: true, pid: first.pid, port: first.port });
  await second.stop();

  const third = await startEmbeddedPostgres({ dataDir });
  expect(third.adopted).toBe(false);
  expect(await query(third.url, "select n from kept")).toEqual([{ n: 7 }]);
  await third.stop();
});

test("a postmaster.pid left behind, naming a process that is another program, never blocks a start", async () => {
  const lock = join(dataDir, "cluster", "postmaster.pid");
  await writeFile(lock, `${process.pid}\n${join(dataDir, "cluster")}\n1\n54321\n\n127.0.0.1\n`);
  const server = await startEmbeddedPostgres({ dataDir });
  expect(server.adopted).toBe(false);
  expect(Number((await readFile(lock, "utf8")).split("\n")[0])).toBe(server.pid);
  process.kill(server.pid, "SIGKILL");
  await sleep(300);
  const again = await startEmbeddedPostgres({ dataDir });
  expect(await query(again.url, "select n from kept")).toEqual([{ n: 7 }]);
  await again.stop();
});
