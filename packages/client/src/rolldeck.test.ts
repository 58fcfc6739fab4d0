import { createServer, type Server } from "node:http";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { EventBody } from "@rolldeck/contracts/events";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { afterEach, describe, expect, it } from "vitest";
import { ApiProblem, UnreachableError } from "./api-problem.ts";
import { Rolldeck } from "./rolldeck.ts";
import { watchEvents } from "./watch-run.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}
type Answer =
  | { readonly status?: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | "reset";

async function serve(
  answer: (seen: Seen, count: number) => Answer,
): Promise<{ rolldeck: Rolldeck; seen: Seen[]; url: string }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const one = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
    seen.push(one);
    const given = answer(one, seen.length);
    if (given === "reset") return void request.socket.destroy();
    response.writeHead(given.status ?? 200, { "content-type": "application/json", ...given.headers });
    response.end(typeof given.body === "string" ? given.body : JSON.stringify(given.body));
  });
  servers.push(server);
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });
  const url = `http://127.0.0.1:${port}`;
  return { rolldeck: new Rolldeck({ url: `${url}/`, token: "rd_x", retryMs: 1 }), seen, url };
}

const problem = { type: "urn:rolldeck:problem:bad-input", title: "t", status: 400, detail: "d", requestId: "r1" };

describe("requests", () => {
  it("carry the token, the query and the body", async () => {
    const { rolldeck, seen } = await serve(({ method }) => ({
      body: method === "GET" ? { items: [], nextCursor: null, total: 0 } : { runId: "abcdefgh" },
    }));
    await rolldeck.listRuns({ query: "tag:a b", limit: 3 });
    await rolldeck.launchRun({ name: "x" }, { idempotencyKey: "k1" });
    expect(seen[0]).toMatchObject({
      url: "/api/v1/runs?query=tag%3Aa+b&limit=3",
      headers: { authorization: "Bearer rd_x" },
    });
    expect(seen[1]).toMatchObject({
      method: "POST",
      url: "/api/v1/runs",
      body: '{"config":{"name":"x"}}',
      headers: { "idempotency-key": "k1" },
    });
  });

  it("can't be led to another address by an id", async () => {
    const { rolldeck, seen } = await serve(() => ({ status: 404, body: { ...problem, status: 404 } }));
    await expect(rolldeck.getRun("../tokens?x=1#y")).rejects.toBeInstanceOf(ApiProblem);
    expect(seen[0]?.url).toBe("/api/v1/runs/..%2Ftokens%3Fx%3D1%23y");
  });

  it("turn refusals into problems that name the field", async () => {
    const errors = [{ path: "taskSets[0].weight", message: "too small", fix: "use 1" }];
    const { rolldeck } = await serve(() => ({ status: 400, body: { ...problem, errors } }));
    const refused = await rolldeck.launchRun({}).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiProblem);
    expect(refused).toMatchObject({
      status: 400,
      message: "taskSets[0].weight: too small (use 1)",
      problem: { requestId: "r1" },
    });
  });

  it("make a problem of an answer that is none", async () => {
    const { rolldeck } = await serve(() => ({ status: 502, body: "<html>bad gateway</html>" }));
    await expect(rolldeck.getSystem()).rejects.toMatchObject({ status: 502 });
  });

  it("refuse an answer that is not what the contract says", async () => {
    const { rolldeck } = await serve(() => ({ body: { items: "many" } }));
    await expect(rolldeck.listRuns()).rejects.toThrow(/items/);
  });
});

describe("a step's batch", () => {
  const row: BatchRow = {
    ...{ runId: "run00001", step: 2, row: 0, groupId: "g", task: "key-chain", instanceId: "train-7", sample: 0 },
    ...{ rolloutId: "r", attempt: 1, ending: "answer", reward: null, advantage: 0, scale: 1, sent: false },
    ...{ learnerVersion: 1, tokens: [7], mask: [{ count: 1, reason: "stale" }], samplerLogprobs: [null] },
    ...{ trainerLogprobs: null, refLogprobs: null, tokenWeights: null, policyVersions: [null] },
  };
  const paged = ({ url }: Seen): Answer => {
    const after = Number(new URL(url, "http://x").searchParams.get("after"));
    const link = `</api/v1/runs/run00001/steps/2/batch?format=jsonl&after=${after + 1}&limit=1>; rel="next"`;
    const headers = { "x-rolldeck-rows": "1", ...(after < 1 ? { link } : {}) };
    return { body: `${JSON.stringify({ ...row, row: after + 1 })}\n`, headers };
  };

  it("is read to its end, row by row", async () => {
    const { rolldeck, seen } = await serve(paged);
    const rows: number[] = [];
    for await (const one of rolldeck.readStepBatch("run00001", 2)) rows.push(one.row);
    expect(rows).toEqual([0, 1, 2]);
    expect(seen.map(({ url }) => url)).toEqual(
      [-1, 0, 1].map((after) => `/api/v1/runs/run00001/steps/2/batch?format=jsonl&after=${after}`),
    );
  });

  it("is repeated where the server did not answer, and given as it came", async () => {
    const bytes = "PAR1\u0000PAR1";
    const { rolldeck, seen } = await serve((_, count) =>
      count === 1 ? "reset" : { body: bytes, headers: { "x-rolldeck-rows": "4" } },
    );
    const files = [];
    for await (const file of rolldeck.fetchStepBatch("run00001", 2, { format: "parquet" })) files.push(file);
    expect(files).toEqual([{ bytes: new TextEncoder().encode(bytes), rows: 4 }]);
    expect(seen[1]?.url).toContain("format=parquet");
  });

  it("has the server's word where it is refused", async () => {
    const { rolldeck } = await serve(() => ({ status: 409, body: { ...problem, status: 409, detail: "gathering" } }));
    await expect(rolldeck.readStepBatch("run00001", 2).next()).rejects.toThrow("gathering");
  });

  it("refuses a row that breaks its promises", async () => {
    const { rolldeck } = await serve(() => ({ body: `${JSON.stringify({ ...row, tokens: [7, 8] })}\n` }));
    await expect(rolldeck.readStepBatch("run00001", 2).next()).rejects.toThrow(/covers 1 of 2 tokens/);
  });
});

describe("dispatch", () => {
  it("is changed at the part's own address, without what was not named", async () => {
    const part = { runId: "r", part: "group", id: "g", held: true, over: false, cancelled: 0 };
    const quotas = { quotas: [], pools: [] };
    const { dispatcher } = RunConfig.parse({ taskSets: [{ name: "x" }] });
    const { rolldeck, seen } = await serve(({ url }) => ({
      body: url.includes("dispatcher") ? { runId: "r", dispatcher, change: {} } : url.includes("hold") ? part : quotas,
    }));
    await rolldeck.changeDispatcher({ runId: "r/1", weight: 2, bounds: { run: 3, init: undefined } });
    expect(await rolldeck.actOnGroup("g", "hold", { reason: "why" })).toEqual(part);
    await rolldeck.setPool({ resource: "sandbox", size: 4 });
    await rolldeck.setQuota({ project: "p", resource: "sandbox", quota: null });
    expect(seen.map(({ url, body }) => [url, JSON.parse(body)])).toEqual([
      ["/api/v1/runs/r%2F1/dispatcher", { weight: 2, bounds: { run: 3 } }],
      ["/api/v1/groups/g/hold", { reason: "why" }],
      ["/api/v1/pools/sandbox", { size: 4 }],
      ["/api/v1/quotas", { project: "p", resource: "sandbox", quota: null }],
    ]);
  });
});

describe("a server that does not answer", () => {
  it("is asked again for reads and for writes with a key, never for other writes", async () => {
    const { rolldeck, seen } = await serve((_, count) => (count % 3 === 0 ? { body: { runId: "abcdefgh" } } : "reset"));
    await expect(rolldeck.launchRun({})).rejects.toBeInstanceOf(UnreachableError);
    expect(seen).toHaveLength(1);
    expect(await rolldeck.launchRun({}, { idempotencyKey: "k" })).toEqual({ runId: "abcdefgh" });
    expect(seen).toHaveLength(3);
  });
});

describe("watch", () => {
  const note = (seq: number) => ({
    runId: "r",
    seq,
    at: "2026-01-01T00:00:00Z",
    body: EventBody.parse({ type: "note", level: "info", message: `${seq}` }),
  });
  const over = (seq: number) => ({
    ...note(seq),
    body: EventBody.parse({ type: "run-status", from: "running", to: "completed", reason: null }),
  });
  const collect = async (pages: (after: number) => unknown, isOver = async () => false) => {
    const seqs: number[] = [];
    const read = async (after: number) => {
      const page = pages(after);
      if (page instanceof Error) throw page;
      return { events: Array.isArray(page) ? page : [], head: 0 };
    };
    for await (const event of watchEvents(read, isOver, { retryMs: 1 })) seqs.push(event.seq);
    return seqs;
  };

  it("gives every event once, waits out a restart, and ends with the run", async () => {
    let asked = 0;
    const seqs = await collect((after) => {
      asked++;
      if (asked === 2) return new UnreachableError("http://x", null);
      if (after === 0) return [note(1), note(2)];
      if (after === 2) return asked < 5 ? [] : [note(3), over(4), note(5)];
      return [];
    });
    expect(seqs).toEqual([1, 2, 3, 4]);
  });

  it("never applies what does not follow", async () => {
    let asked = 0;
    const seqs = await collect((after) => (asked++ === 0 ? [note(2)] : after === 0 ? [note(1), over(2)] : []));
    expect(seqs).toEqual([1, 2]);
  });

  it("ends at once for a run that was over before", async () => {
    expect(
      await collect(
        () => [],
        async () => true,
      ),
    ).toEqual([]);
  });
});
