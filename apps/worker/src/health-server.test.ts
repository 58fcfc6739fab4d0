import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startHealthServer } from "./health-server.ts";
import { createMeasures } from "./measures.ts";

let close: (() => Promise<unknown>) | null = null;
afterEach(async () => {
  await close?.();
  close = null;
});

async function serve(ailment: () => Promise<string | null>) {
  const measures = createMeasures();
  const server = await startHealthServer({ port: 0, measures, ailment });
  close = () => {
    server.close();
    return once(server, "close");
  };
  const { port, address } = server.address() as AddressInfo;
  return { measures, address, get: (path: string) => fetch(`http://127.0.0.1:${port}${path}`) };
}

test("healthy, or what is wrong; on loopback alone", async () => {
  let ailment: string | null = null;
  const { address, get } = await serve(async () => ailment);
  expect(address).toBe("127.0.0.1");
  expect((await get("/healthz")).status).toBe(200);
  ailment = "the database does not answer";
  const sick = await get("/healthz");
  expect([sick.status, await sick.json()]).toEqual([503, { ok: false, ailment }]);
  expect((await get("/else")).status).toBe(404);
});

test("a check that throws is not health", async () => {
  const { get } = await serve(() => Promise.reject(new Error("broken")));
  expect((await get("/healthz")).status).toBe(503);
});

test("measures in Prometheus' text", async () => {
  const { measures, get } = await serve(async () => null);
  measures.activeStages.inc({ stage: "run" }, 3);
  const text = await (await get("/metrics")).text();
  expect(text).toContain('rolldeck_worker_active_stages{stage="run"} 3');
});
