import { Problem } from "@rolldeck/contracts/api/problems";
import { BatchRow, batchRowJsonSchema } from "@rolldeck/contracts/batch-row";
import { TooLargeError } from "@rolldeck/contracts/errors";
import { readBatch } from "@rolldeck/db/reads/read-batch";
import { seedRun, seedStep, seedTrainingRow, seedTrajectory } from "@rolldeck/db/testing/seed-run";
import { parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { toProblem } from "../problems.ts";
import { stepBatch } from "../services/step-batch.ts";
import { openApi } from "./openapi.ts";

let api: TestApi;
let runId: string;
beforeAll(async () => {
  api = await startTestApi();
  const { pool } = api.database;
  runId = await seedRun(pool);
  const rollouts = [0, 1, 0].map((reward) => ({ reward, ending: "answer" as const }));
  const step = await seedStep(pool, runId, { step: 1, rollouts });
  for (const [row, rolloutId] of step.rolloutIds.entries()) {
    await seedTrajectory(pool, rolloutId, [
      { origin: "template", text: "abc" },
      { origin: "sampled", text: "defg" },
    ]);
    const mask = [
      { count: 3, reason: "template" },
      { count: 1, reason: "no-logprob" },
      { count: 3, reason: null },
    ] as const;
    await seedTrainingRow(pool, {
      runId,
      stepId: step.stepId,
      rolloutId,
      row,
      ranges: [0, 7],
      mask,
      advantage: row - 1,
    });
  }
  await seedStep(pool, runId, { step: 2, state: "gathering", rollouts: [] });
});
afterAll(() => api.close());

const get = (rest: string, init?: RequestInit) => api.fetch(`/api/v1/runs/${runId}/steps/${rest}`, init);
const lines = async (response: Response): Promise<BatchRow[]> =>
  (await response.text())
    .split("\n")
    .slice(0, -1)
    .map((line) => BatchRow.parse(JSON.parse(line)));
const stored = async () => {
  const query = { runId, step: 1, after: -1, limit: 100, maxTokens: 1000 };
  return (await readBatch(api.database.pool, query)).rows;
};

describe("a step's batch", () => {
  it("is JSON Lines, as a file", async () => {
    const response = await get("1/batch");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/jsonl");
    expect(response.headers.get("content-disposition")).toContain(`${runId}-step-1.jsonl`);
    expect(response.headers.get("x-rolldeck-rows")).toBe("3");
    expect(response.headers.get("link")).toBeNull();
    expect(await lines(response)).toEqual(await stored());
  });

  it("links the rows that follow", async () => {
    const seen: number[] = [];
    let path: string | undefined = `/api/v1/runs/${runId}/steps/1/batch?limit=1`;
    while (path !== undefined) {
      const response: Response = await api.fetch(path);
      seen.push(...(await lines(response)).map(({ row }) => row));
      path = /^<([^>]+)>; rel="next"$/u.exec(response.headers.get("link") ?? "")?.[1];
    }
    expect(seen).toEqual([0, 1, 2]);
  });

  it("is Parquet with the same columns", async () => {
    const response = await get("1/batch?format=parquet");
    expect(response.headers.get("content-type")).toBe("application/vnd.apache.parquet");
    const rows = await parquetReadObjects({ file: await response.arrayBuffer() });
    const ids = z.array(z.bigint().transform(Number));
    expect(rows.map((row) => ({ ...row, tokens: ids.parse(row.tokens) }))).toEqual(await stored());
  });

  it("is Parquet of many row groups, or refused as too large with what to do", async () => {
    const { pool } = api.database;
    const input = { runId, step: 1, format: "parquet", after: -1, limit: 100 } as const;
    const groups = async (change: { limit?: number; after?: number }, page: number) => {
      const { bytes, rows, next } = await stepBatch(pool, { ...input, ...change }, { page, parquet: 21 });
      const read = await parquetReadObjects({ file: bytes.buffer });
      expect(rows).toBe(read.length);
      return [read.map((row) => row.row), next];
    };
    expect(await groups({}, 1)).toEqual([[0, 1, 2], null]);
    expect(await groups({ limit: 2 }, 1)).toEqual([[0, 1], 1]);
    expect(await groups({ after: 0 }, 100)).toEqual([[1, 2], null]);
    const refused = stepBatch(pool, input, { page: 100, parquet: 20 });
    await expect(refused).rejects.toBeInstanceOf(TooLargeError);
    await expect(refused).rejects.toThrow("3 rows of step 1 hold 21 tokens, over 20: ask for fewer");
    expect(toProblem(await refused.catch((error: unknown) => error), "r")).toMatchObject({ status: 413 });
  });

  it.each([
    ["9/batch", 404, "no step with id 9"],
    ["2/batch", 409, "step 2 has no training rows: it is still gathering rollouts"],
    ["one/batch", 400, "step: must be a whole number"],
    ["1/batch?format=csv", 400, "format"],
    ["1/batch?limit=0", 400, "limit"],
  ])("at %s is refused with %i", async (rest, status, detail) => {
    const response = await get(rest);
    expect(response.status).toBe(status);
    expect(Problem.parse(await response.json()).detail).toContain(detail);
  });

  it("is refused to whoever is not signed in; a read token will do", async () => {
    expect((await get("1/batch", { headers: { authorization: "" } })).status).toBe(401);
    const made = await api.fetch("/api/v1/tokens", jsonPost({ name: "reader", scope: "read" }));
    const { secret } = z.object({ secret: z.string() }).parse(await made.json());
    expect((await get("1/batch", { headers: { authorization: `Bearer ${secret}` } })).status).toBe(200);
  });

  it("is in the OpenAPI document, and its row's JSON Schema is served", async () => {
    const document = JSON.stringify(openApi());
    expect(document).toContain('"application/jsonl":{"schema":{"$ref":"#/components/schemas/BatchRow"}}');
    expect(document).toContain('"application/vnd.apache.parquet"');
    const response = await api.fetch("/api/v1/schemas/batch-row");
    expect(await response.json()).toEqual(batchRowJsonSchema());
  });
});
