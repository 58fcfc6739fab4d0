import { once } from "node:events";
import { queueNames } from "@rolldeck/contracts/jobs";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type RestartableServer, startPostgres } from "../testing/postgres.ts";
import { until } from "../testing/queue-rig.ts";
import { connectQueue } from "./connection.ts";
import { Consumer } from "./consumer.ts";
import { Producer } from "./producer.ts";
import { isOutage, SharedPool } from "./shared-pool.ts";

let server: RestartableServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server?.remove());

/** As processes make theirs: a client that is ending has left the pool, and may still hear that its server goes down. */
function openPool(max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max });
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

test("four consumers and a producer stay within the pool and leave its names to our own tables", async () => {
  const pool = openPool(6);
  const warnings: Error[] = [];
  const listen = (warning: Error): void => void warnings.push(warning);
  process.on("warning", listen);
  onTestFinished(() => void process.off("warning", listen));
  const connection = await connectQueue({ pool });
  const producer = new Producer(connection);
  let handled = 0;
  const count = async (): Promise<void> => void handled++;
  const consumers = queueNames.map(
    (queue) =>
      new Consumer(connection, {
        queue,
        concurrency: 4,
        handle: { reconcile: count, stage: count, "run-stage": count, prepare: count, update: count },
        onError: (error) => warnings.push(error),
      }),
  );
  for (const consumer of consumers) consumer.start();
  await producer.addMany([
    { name: "reconcile", payload: { runId: "r" } },
    { name: "prepare", payload: { runId: "r" } },
    { name: "stage", payload: { runId: "r", rolloutId: "x", attempt: 1, stage: "init" } },
    { name: "run-stage", payload: { runId: "r", rolloutId: "x", attempt: 1, stage: "run" } },
  ]);
  await until(() => handled === 4, "a job on each queue");
  expect(pool.totalCount).toBeLessThanOrEqual(6);
  const { rows } = await pool.query("select current_schema() as first");
  expect(rows[0].first).toBe("public");
  await Promise.all(consumers.map((consumer) => consumer.close(1000)));
  await producer.close();
  await connection.close();
  expect(warnings).toEqual([]);
  await pool.end();
});

test("one outage is one report, and looks like a refused connection to whoever queries", async () => {
  const pool = openPool(2);
  // Whoever makes a pool listens to it for as long as it lives.
  pool.on("error", () => {});
  const shared = new SharedPool(pool);
  const reports: Error[] = [];
  shared.on("error", (error: Error) => reports.push(error));
  await shared.query("select 1");
  const reported = once(shared, "error");
  await server.stop();
  await reported;
  for (let n = 0; n < 3; n++) {
    await expect(shared.query("select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  }
  expect(reports).toHaveLength(1);
  await server.start();
  await until(async () => {
    try {
      return (await shared.query<{ one: number }>("select 1 as one")).rows[0]?.one === 1;
    } catch {
      return false;
    }
  }, "the server answers again");
  await expect(shared.query("select no_such_column")).rejects.toMatchObject({ code: "42703" });
  await shared.end();
  await pool.end();
});

test("a connection that was given up can't end the process with its last words", async () => {
  const pool = openPool(1);
  const shared = new SharedPool(pool);
  const client = await pool.connect();
  client.release();
  const taken = await shared.connect();
  taken.removeAllListeners();
  taken.release(true);
  expect(() => client.emit("error", new Error("terminating connection"))).not.toThrow();
  await shared.end();
  await pool.end();
});

test.each([
  ["57P01", "terminating connection due to administrator command", true],
  ["08006", "connection failure", true],
  ["ECONNRESET", "read ECONNRESET", true],
  ["", "Connection terminated unexpectedly", true],
  ["23505", "duplicate key value", false],
  ["BM001", "job is not in the active state", false],
  ["42P01", 'relation "job" does not exist', false],
])("SQLSTATE %s (%s): outage %s", (code, message, expected) => {
  expect(isOutage(Object.assign(new Error(message), { code }))).toBe(expected);
});

test("thousands of statements leave the rest of the pool to the process, and all come to their end", async () => {
  const pool = openPool(5);
  const shared = new SharedPool(pool);
  let most = 0;
  const many = Array.from({ length: 2_000 }, async (_, n) => {
    const { rows } = await shared.query<{ n: number }>("select $1::int as n, pg_sleep(0)", [n]);
    most = Math.max(most, pool.totalCount);
    return rows[0]?.n;
  });
  // Nobody waits at the pool, so whoever comes there now is served at once.
  await new Promise((resolve) => setImmediate(resolve));
  expect(pool.waitingCount).toBe(0);
  expect(await Promise.all(many)).toEqual(many.map((_, n) => n));
  expect(most).toBeLessThanOrEqual(2);
  await shared.end();
  await pool.end();
});

test("statements that wait when the server goes away fail with it, none waits for the others to fail", async () => {
  const pool = openPool(5);
  const shared = new SharedPool(pool);
  const reported: Error[] = [];
  shared.on("error", (error) => reported.push(error));
  const many = Array.from({ length: 500 }, () => shared.query("select pg_sleep(60)"));
  const settled = Promise.allSettled(many);
  await until(() => pool.totalCount === 2, "the first are under way");
  await server.stop();
  const results = await settled;
  const refused = results.filter((result) => result.status === "rejected");
  expect(refused).toHaveLength(500);
  expect(refused.every(({ reason }) => reason.code === "ECONNREFUSED")).toBe(true);
  await server.start();
  await until(async () => {
    const { rows } = await shared.query<{ one: number }>("select 1 as one").catch(() => ({ rows: [] }));
    return rows.length === 1;
  }, "the server is back");
  expect(await Promise.all(Array.from({ length: 20 }, () => shared.query("select 1")))).toHaveLength(20);
  await shared.end();
  await pool.end();
});
