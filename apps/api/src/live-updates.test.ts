/**
 * Live view and reloaded view are equal after any sequence of cuts: a client that was cut off before its first event, in the
 * middle, over a restart of the server or of Postgres, or for longer than anything is kept in memory, ends with the whole
 * log, once each, in order.
 */
import { startTestPostgres } from "@rolldeck/db/testing/postgres";
import { seedEvents, seedRun } from "@rolldeck/db/testing/seed-run";
import { LiveConnection } from "@rolldeck/realtime/client/live-connection";
import { LiveRun, type LiveRunState } from "@rolldeck/realtime/client/live-run";
import { type CuttableProxy, startCuttableProxy } from "@rolldeck/realtime/testing/cuttable-proxy";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { jsonPost, startTestApi, type TestApi } from "../testing/start-api.ts";

let api: TestApi;
const opened: { close(): void | Promise<void> }[] = [];
beforeAll(async () => {
  api = await startTestApi();
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});
afterAll(() => api.close());

const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 10 });
const emit = (runId: string, count: number) => seedEvents(api.database.pool, runId, count);
const range = (to: number, from = 0): number[] => Array.from({ length: to - from }, (_, at) => from + at + 1);

interface Client {
  readonly proxy: CuttableProxy;
  readonly connection: LiveConnection;
  readonly live: LiveRun;
  readonly seqs: number[];
  readonly states: LiveRunState[];
}

async function openClient(runId: string, after = 0, port = api.port): Promise<Client> {
  const proxy = await startCuttableProxy(port);
  const connection = new LiveConnection({
    url: proxy.url,
    token: api.ownerToken,
    reconnectMs: 20,
    reconnectMaxMs: 100,
  });
  const seqs: number[] = [];
  const live = new LiveRun(connection, {
    runId,
    after,
    answerTimeoutMs: 1_000,
    onEvents: (events) => seqs.push(...events.map((event) => event.seq)),
  });
  const states: LiveRunState[] = [];
  live.subscribe(() => states.push(live.getState()));
  opened.push({
    async close() {
      live.stop();
      connection.close();
      await proxy.close();
    },
  });
  return { proxy, connection, live, seqs, states };
}
const isLive = ({ live }: Client) => until(() => expect(live.getState().stale).toBe(false));

describe("a client that is cut off", () => {
  it("before its first event ends with all of them", async () => {
    const runId = await seedRun(api.database.pool);
    const client = await openClient(runId);
    await isLive(client);
    client.proxy.cut();
    await until(() => expect(client.live.getState()).toMatchObject({ connected: false, stale: true }));
    await emit(runId, 5);
    client.proxy.restore();
    await until(() => expect(client.seqs).toEqual(range(5)));
    await isLive(client);
    expect(client.live.getState()).toMatchObject({ cursor: 5, head: 5, error: null });
  });

  it("before it ever connected, too", async () => {
    const runId = await seedRun(api.database.pool);
    const client = await openClient(runId);
    client.proxy.cut();
    await emit(runId, 3);
    client.proxy.restore();
    await until(() => expect(client.seqs).toEqual(range(3)));
  });

  it("again and again in mid-stream misses and doubles nothing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("emit", "burst", "cut", "restore", "freeze", "wait"), { minLength: 5, maxLength: 30 }),
        async (actions) => {
          const runId = await seedRun(api.database.pool);
          const client = await openClient(runId);
          let total = 0;
          for (const action of actions) {
            if (action === "emit" || action === "burst") {
              const count = action === "emit" ? 1 : 700;
              total += count;
              await emit(runId, count);
            } else if (action === "wait") await new Promise((resolve) => setTimeout(resolve, 30));
            else client.proxy[action]();
          }
          client.proxy.restore();
          await until(() => expect(client.seqs.length).toBeGreaterThanOrEqual(total));
          expect(client.seqs).toEqual(range(total));
          client.live.stop();
          client.connection.close();
        },
      ),
      { numRuns: 12 },
    );
  }, 60_000);

  it("for longer than anything is kept in memory reads the rest from the rows", async () => {
    const runId = await seedRun(api.database.pool);
    const [away, present] = [await openClient(runId), await openClient(runId)];
    await Promise.all([isLive(away), isLive(present)]);
    await emit(runId, 10);
    await until(() => expect(away.seqs).toHaveLength(10));
    away.proxy.cut();
    for (let n = 0; n < 12; n++) await emit(runId, 500);
    await until(() => expect(present.seqs).toEqual(range(6_010)));
    away.proxy.restore();
    await until(() => expect(away.seqs).toEqual(range(6_010)));
  });

  it("while another one is not disturbs nobody", async () => {
    const runId = await seedRun(api.database.pool);
    const [a, b] = [await openClient(runId), await openClient(runId, 0)];
    await Promise.all([isLive(a), isLive(b)]);
    a.proxy.cut();
    await emit(runId, 7);
    await until(() => expect(b.seqs).toEqual(range(7)));
    expect(a.seqs).toEqual([]);
    a.proxy.restore();
    await until(() => expect(a.seqs).toEqual(range(7)));
    expect(b.seqs).toEqual(range(7));
  });
});

describe("a server that goes away", () => {
  it("and comes back finds its clients where they were", async () => {
    const runId = await seedRun(api.database.pool);
    const client = await openClient(runId);
    await isLive(client);
    await emit(runId, 4);
    await until(() => expect(client.seqs).toEqual(range(4)));
    const back = api.restart();
    await emit(runId, 3);
    await back;
    await emit(runId, 2);
    await until(() => expect(client.seqs).toEqual(range(9)));
    await isLive(client);
  });

  it("is Postgres: the listener comes back, and what was committed meanwhile is told", async () => {
    const runId = await seedRun(api.database.pool);
    const client = await openClient(runId);
    await isLive(client);
    await (await startTestPostgres()).restart();
    await until(() => emit(runId, 1));
    await until(() => expect(client.seqs).toEqual(range(1)));
    await emit(runId, 1);
    await until(() => expect(client.seqs).toEqual(range(2)));
  });
});

describe("several api processes", () => {
  it("tell the same, whichever a client is connected to", async () => {
    const runId = await seedRun(api.database.pool);
    const sibling = await api.sibling();
    opened.push(sibling);
    const [here, there] = [await openClient(runId), await openClient(runId, 0, sibling.port)];
    await Promise.all([isLive(here), isLive(there)]);
    await emit(runId, 3);
    await until(() => expect(here.seqs).toEqual(range(3)));
    await until(() => expect(there.seqs).toEqual(range(3)));
  });
});

describe("following", () => {
  it("starts where the page was loaded, and several followers share a connection", async () => {
    const runId = await seedRun(api.database.pool);
    await emit(runId, 20);
    const client = await openClient(runId, 20);
    const early: number[] = [];
    const second = new LiveRun(client.connection, {
      runId,
      after: 5,
      onEvents: (events) => early.push(...events.map((event) => event.seq)),
    });
    await emit(runId, 2);
    await until(() => expect(client.seqs).toEqual([21, 22]));
    await until(() => expect(early).toEqual(range(22, 5)));
    second.stop();
    await emit(runId, 1);
    await until(() => expect(client.seqs).toEqual([21, 22, 23]));
    expect(early).toHaveLength(17);
  });

  it("is refused for a run that is not there, and says so", async () => {
    const client = await openClient("nothinghere");
    await until(() => expect(client.live.getState()).toMatchObject({ stale: true, error: "no such run" }));
  });

  it("is refused without a token, and with one that was revoked", async () => {
    const nobody = new LiveConnection({ url: api.url });
    opened.push(nobody);
    await until(() => expect(nobody.getState()).toMatchObject({ connected: false, reason: "not signed in" }));
    const made: unknown = await (await api.fetch("/api/v1/tokens", jsonPost({ name: "socket", scope: "read" }))).json();
    const { secret, tokenId } = { secret: "", tokenId: "", ...(typeof made === "object" ? made : {}) };
    const reader = new LiveConnection({ url: api.url, token: secret });
    opened.push(reader);
    await until(() => expect(reader.getState().connected).toBe(true));
    await api.fetch(`/api/v1/tokens/${tokenId}`, { method: "DELETE" });
    const late = new LiveConnection({ url: api.url, token: secret });
    opened.push(late);
    await until(() => expect(late.getState().reason).toBe("not signed in"));
  });

  it("of the run list says which runs changed, and everything after a cut", async () => {
    const runId = await seedRun(api.database.pool);
    const client = await openClient(runId);
    const told: (readonly string[])[] = [];
    client.connection.watchRuns((runIds) => told.push(runIds));
    await isLive(client);
    await emit(runId, 1);
    await until(() => expect(told.flat()).toContain(runId));
    client.proxy.cut();
    await until(() => expect(client.connection.getState().connected).toBe(false));
    told.length = 0;
    client.proxy.restore();
    await until(() => expect(told).toContainEqual([]));
  });
});
