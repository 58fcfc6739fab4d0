import { maxArtifactBytes } from "@rolldeck/contracts/api/artifacts";
import { FencedError } from "@rolldeck/contracts/errors";
import { readArtifact } from "@rolldeck/db/artifacts";
import type { Queryable } from "@rolldeck/db/reads/rows";
import { createTestDatabase, type TestDatabase } from "@rolldeck/db/testing/postgres";
import { type SeededRollout, seedRollouts } from "@rolldeck/db/testing/seed-rollouts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { saveArtifact } from "./save-artifact.ts";

let database: TestDatabase;
let rollout: SeededRollout;
const { signal } = new AbortController();
beforeAll(async () => {
  database = await createTestDatabase();
  rollout = (await seedRollouts(database.pool, { count: 1 })).rollouts[0] as SeededRollout;
});
afterAll(() => database.drop());

const read = async (turn: number, name: string) => {
  const { info, content } = await readArtifact(database.pool, { rolloutId: rollout.rolloutId, turn, index: 0, name });
  return { ...info, text: Buffer.from(content).toString() };
};

test("an output of 200 MB is kept as its head and tail, with its true size", async () => {
  const text = `first ${"é".repeat(100_000_000)} last`;
  await saveArtifact(database.pool, rollout, { turn: 0, index: 0, name: "output.txt", text }, signal);
  const kept = await read(0, "output.txt");
  expect(kept.bytes).toBe(200_000_011);
  expect(kept.storedBytes).toBeLessThanOrEqual(maxArtifactBytes);
  expect(kept.text.startsWith("first é") && kept.text.endsWith("é last")).toBe(true);
  expect(kept.text).toContain("of 200000011 bytes cut");
});

test.each([
  ["output.txt", "output.txt"],
  ["a/b c.txt", "a_b_c.txt"],
  ["../../etc", "output-etc"],
  ["", "output"],
  ["\u{1f642}", "output-"],
])("%j is kept under the name %j", async (name, kept) => {
  await saveArtifact(database.pool, rollout, { turn: 1, index: 0, name, text: "a\0b" }, signal);
  expect(await read(1, kept)).toMatchObject({ text: "a\0b", bytes: 3 });
});

test("a lost claim writes nothing and says so", async () => {
  const output = { turn: 2, index: 0, name: "output.txt", text: "x" };
  const lost = saveArtifact(database.pool, { ...rollout, claim: 7 }, output, signal);
  await expect(lost).rejects.toBeInstanceOf(FencedError);
  await expect(read(2, "output.txt")).rejects.toThrow("no artifact");
});

test("a database that is away for two tries is waited for, and the wait ends with the stage", async () => {
  let away = 2;
  const flaky: Queryable = {
    // @ts-expect-error: the pool's query has many shapes; here only one is used
    query: (sql: string, values: unknown[]) =>
      away-- > 0 ? Promise.reject(new Error("connection refused")) : database.pool.query(sql, values),
  };
  const output = { turn: 3, index: 0, name: "output.txt", text: "x" };
  await saveArtifact(flaky, rollout, output, signal);
  expect((await read(3, "output.txt")).text).toBe("x");
  away = 1000;
  const stage = new AbortController();
  const waiting = saveArtifact(flaky, rollout, output, stage.signal);
  stage.abort(new Error("the run stopped"));
  await expect(waiting).rejects.toThrow("the run stopped");
});
