import { FencedError } from "@rolldeck/contracts/errors";
import { EventBody, maxEventBytes } from "@rolldeck/contracts/events";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededRollout, seedRollouts, turnEntry } from "../../testing/seed-rollouts.ts";
import { createPool } from "../connect.ts";
import { BatchWriter } from "./batch-writer.ts";
import type { EdgeEntry, ToolsEntry } from "./entries.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const events = async (runId: string) =>
  (await database.pool.query("select seq, type, rollout_id, body from events where run_id = $1 order by seq", [runId]))
    .rows;
const edge = (rollout: SeededRollout, to: EdgeEntry["to"], stage: EdgeEntry["stage"] = "run"): EdgeEntry => ({
  kind: "edge",
  ...rollout,
  stage,
  to,
});
const toolsEntry = (rollout: SeededRollout, turn: number, output = "b"): ToolsEntry => ({
  kind: "tools",
  ...rollout,
  turn,
  results: [{ index: 0, output, error: null, durationMs: 3 }],
  segments: [],
  durationMs: 3,
  nextRanges: null,
});

test("writers of two pools share one gapless seq, in the order of commits", async () => {
  const run = await seedRollouts(database.pool, { count: 64 });
  const pools = [createPool(database.url), createPool(database.url)];
  const commits: { seq: number }[] = [];
  const writers = pools.map(
    (pool) => new BatchWriter(pool, { maxEntries: 16, onCommitted: (runs) => commits.push(...runs) }),
  );
  const watching = watch(run.runId);
  const seqs = await Promise.all(
    run.rollouts.map(async (rollout, place) => {
      const writer = writers[place % 2];
      const mine: number[] = [];
      for (let turn = 0; turn < 6 && writer; turn++) mine.push((await writer.write(turnEntry(rollout, turn))).seq);
      return mine;
    }),
  );
  for (const mine of seqs) expect(mine).toEqual([...mine].sort((a, b) => a - b));
  expect(seqs.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 384 }, (_, place) => place + 1));
  const rows = await events(run.runId);
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: 384 }, (_, place) => place + 1));
  for (const row of rows) EventBody.parse(row.body);
  expect(await watching()).toBe(0);
  const { rows: totals } = await database.pool.query("select next_seq, sampled_tokens from runs where id = $1", [
    run.runId,
  ]);
  expect(totals).toEqual([{ next_seq: 385, sampled_tokens: 384 * 40 }]);
  await Promise.all(writers.map((writer) => writer.close()));
  await Promise.all(pools.map((pool) => pool.end()));
});

/** Reads the log over and over; counts reads in which a number below the highest was missing. */
function watch(runId: string): () => Promise<number> {
  let on = true;
  let gaps = 0;
  const loop = (async () => {
    while (on) {
      const { rows } = await database.pool.query(
        "select count(*) as n, coalesce(max(seq), 0) as head from events where run_id = $1",
        [runId],
      );
      if (rows[0].n !== rows[0].head) gaps += 1;
    }
  })();
  return async () => {
    on = false;
    await loop;
    return gaps;
  };
}

test("a stale claim, a stale attempt, a settled rollout and a foreign run write nothing; their neighbours are written", async () => {
  const run = await seedRollouts(database.pool, { count: 5 });
  const [good, staleClaim, staleAttempt, settled, foreign] = run.rollouts as [
    SeededRollout,
    SeededRollout,
    SeededRollout,
    SeededRollout,
    SeededRollout,
  ];
  await database.pool.query("update rollouts set claim = 2 where id = $1", [staleClaim.rolloutId]);
  await database.pool.query("update rollouts set attempt = 2 where id = $1", [staleAttempt.rolloutId]);
  await database.pool.query("update rollouts set state = 'settled' where id = $1", [settled.rolloutId]);
  const writer = new BatchWriter(database.pool);
  const other = await seedRollouts(database.pool, { count: 1 });
  const results = await Promise.allSettled([
    writer.write(turnEntry(good, 0)),
    writer.write(turnEntry(staleClaim, 0)),
    writer.write(turnEntry(staleAttempt, 0)),
    writer.write(turnEntry(settled, 0)),
    writer.write(turnEntry({ ...foreign, runId: other.runId }, 0)),
    writer.write(edge({ ...other.rollouts[0], claim: 7 } as SeededRollout, { move: "next-stage", stage: "evaluate" })),
  ]);
  expect(results.map((result) => result.status)).toEqual(["fulfilled", ...Array(5).fill("rejected")]);
  for (const result of results) if (result.status === "rejected") expect(result.reason).toBeInstanceOf(FencedError);
  expect((await events(run.runId)).map((row) => row.rollout_id)).toEqual([good.rolloutId]);
  expect(await events(other.runId)).toEqual([]);
  const { rows } = await database.pool.query(
    "select (select count(*) from transitions t join rollouts r on r.id = rollout_id where run_id = $1) as turns, (select count(*) from segments s join rollouts r on r.id = rollout_id where run_id = $1) as segments",
    [run.runId],
  );
  expect(rows).toEqual([{ turns: 1, segments: 2 }]);
  await writer.close();
});

test("one entry that the database refuses fails alone", async () => {
  const run = await seedRollouts(database.pool, { count: 20 });
  const writer = new BatchWriter(database.pool);
  const results = await Promise.allSettled(
    run.rollouts.map((rollout, place) => {
      const entry = turnEntry(rollout, 0);
      return writer.write(place === 7 ? { ...entry, turn: { ...entry.turn, promptTokens: 2 ** 40 } } : entry);
    }),
  );
  expect(results.flatMap((result, place) => (result.status === "rejected" ? [place] : []))).toEqual([7]);
  const rows = await events(run.runId);
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: 19 }, (_, place) => place + 1));
  await writer.close();
});

test("an entry that can never be stored is refused before it meets others", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  const entry = turnEntry(rollout, 0);
  const bad = { ...entry, segments: [{ ...entry.segments[0], tokens: [-5] }] } as typeof entry;
  await expect(writer.write(bad)).rejects.toThrow(RangeError);
  const settle = {
    move: "settle",
    outcome: "completed",
    ending: "answer",
    reason: null,
    rewardParts: {},
    success: true,
  } as const;
  await expect(writer.write(edge(rollout, { ...settle, reward: Number.NaN }))).rejects.toThrow(/finite/);
  await writer.close();
});

test("calls of one turn end one after the other, each in a write of its own", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  const entry = turnEntry(rollout, 0);
  const calls = [0, 1, 2].map((index) => ({ index, name: "get", arguments: {}, raw: "" }));
  await writer.write({ ...entry, turn: { ...entry.turn, calls } });
  const result = (index: number) => ({ index, output: `b${index}`, error: null, durationMs: 3 });
  const last = { index: 2, origin: "observation", tokens: [1], logprobs: null, policyVersion: null } as const;
  const seqs: number[] = [];
  for (const results of [[result(0)], [result(1), result(2)]]) {
    const ended = { ...toolsEntry(rollout, 0), results, segments: results.length > 1 ? [last] : [] };
    seqs.push((await writer.write(ended)).seq);
    await writer.write(ended);
  }
  expect(seqs).toEqual([2, 3]);
  const { rows } = await database.pool.query(
    `select index, state, output from tool_calls where rollout_id = $1 order by index`,
    [rollout.rolloutId],
  );
  expect(rows).toEqual([0, 1, 2].map((index) => ({ index, state: "ended", output: `b${index}` })));
  const { rows: segments } = await database.pool.query(`select index from segments where rollout_id = $1`, [
    rollout.rolloutId,
  ]);
  expect(segments).toHaveLength(3);
  await writer.close();
});

test("a rollout is as old as the version of its first turn, whatever served when it was claimed", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  await database.pool.query("update rollouts set first_version = 4 where id = $1", [rollout.rolloutId]);
  const writer = new BatchWriter(database.pool);
  const ages: (number | null)[] = [];
  for (const [turn, policyVersion] of [5, 6].entries()) {
    const entry = turnEntry(rollout, turn);
    await writer.write({ ...entry, turn: { ...entry.turn, policyVersion } });
    await writer.write(toolsEntry(rollout, turn));
    const { rows } = await database.pool.query("select first_version from rollouts where id = $1", [rollout.rolloutId]);
    ages.push(rows[0].first_version);
  }
  expect(ages).toEqual([5, 5]);
  await writer.close();
});

test("a turn or its results written twice by one claim are there once, and both writes succeed (fault 41)", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  const first = await writer.write(turnEntry(rollout, 0));
  expect(await writer.write(turnEntry(rollout, 0))).toEqual(first);
  const ended = await writer.write(toolsEntry(rollout, 0));
  expect(await writer.write(toolsEntry(rollout, 0, "other"))).toEqual(ended);
  // A turn without calls has only its segments to tell.
  const observation = { index: 2, origin: "observation", tokens: [1], logprobs: null, policyVersion: null } as const;
  const bare: ToolsEntry = {
    kind: "tools",
    ...rollout,
    turn: 1,
    results: [],
    segments: [observation],
    durationMs: 0,
    nextRanges: null,
  };
  const told = await writer.write(bare);
  expect(await writer.write(bare)).toEqual(told);
  expect(await events(run.runId)).toHaveLength(3);
  const { rows } = await database.pool.query("select turns, sampled_tokens from rollouts where id = $1", [
    rollout.rolloutId,
  ]);
  expect(rows).toEqual([{ turns: 1, sampled_tokens: 40 }]);
  const { rows: calls } = await database.pool.query("select state, output from tool_calls where rollout_id = $1", [
    rollout.rolloutId,
  ]);
  expect(calls).toEqual([{ state: "ended", output: "b" }]);
  await writer.close();
});

test("NUL and surrogate halves in outputs, values and keys get a stand-in; ten entries of a batch are all written", async () => {
  const run = await seedRollouts(database.pool, { count: 10 });
  const writer = new BatchWriter(database.pool);
  await Promise.all(
    run.rollouts.map((rollout, place) => {
      const entry = turnEntry(rollout, 0);
      if (place !== 4) return writer.write(entry);
      const call = {
        index: 0,
        name: "ge\u0000t",
        arguments: { "k\u0000": ["\ud83d", { "\udc00": "x\u0000" }] },
        raw: "r\u0000\ud800",
      };
      return writer.write({ ...entry, turn: { ...entry.turn, parseError: "p\u0000", calls: [call] } });
    }),
  );
  const odd = run.rollouts[4] as SeededRollout;
  await writer.write(toolsEntry(odd, 0, "ab\u0000cd\ud800"));
  await writer.write(
    edge(odd, { move: "next-stage", stage: "evaluate", ending: "answer", finalAnswer: "z\u0000", reason: "y\u0000" }),
  );
  const { rows } = await database.pool.query(
    "select name, arguments, raw, output from tool_calls where rollout_id = $1",
    [odd.rolloutId],
  );
  expect(rows).toEqual([
    {
      name: "ge\u2400t",
      arguments: { "k\u2400": ["\ufffd", { "\ufffd": "x\u2400" }] },
      raw: "r\u2400\ufffd",
      output: "ab\u2400cd\ufffd",
    },
  ]);
  expect(await events(run.runId)).toHaveLength(12);
  await writer.close();
});

test("any text a model can produce is stored and read back well-formed", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  let turn = 0;
  const anyText = fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      await writer.write(turnEntry(rollout, turn, { sampled: 1, observation: 1 }));
      await writer.write(toolsEntry(rollout, turn, text));
      const { rows } = await database.pool.query("select output from tool_calls where rollout_id = $1 and turn = $2", [
        rollout.rolloutId,
        turn,
      ]);
      expect(rows[0].output).toBe(text.replaceAll("\u0000", "\u2400").replace(/\p{Surrogate}/gu, "\ufffd"));
      turn += 1;
    }),
    { numRuns: 60 },
  );
  await writer.close();
});

test("events stay within 2 KB whatever names and reasons hold", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  const writer = new BatchWriter(database.pool);
  const entry = turnEntry(rollout, 0);
  const calls = Array.from({ length: 20 }, (_, index) => ({ index, name: "語".repeat(300), arguments: {}, raw: "" }));
  await writer.write({ ...entry, turn: { ...entry.turn, calls } });
  await writer.write(edge(rollout, { move: "release", failure: "none", reason: "🙂語".repeat(400) }));
  const rows = await events(run.runId);
  expect(rows.map((row) => row.type)).toEqual(["turn-sampled", "rollout-status"]);
  for (const row of rows) {
    EventBody.parse(row.body);
    expect(Buffer.byteLength(JSON.stringify(row.body))).toBeLessThanOrEqual(maxEventBytes);
  }
  await writer.close();
});

test("counters past 2^53 stay exact", async () => {
  const run = await seedRollouts(database.pool, { count: 1 });
  const [rollout] = run.rollouts as [SeededRollout];
  await database.pool.query("update runs set sampled_tokens = 9007199254740993 where id = $1", [run.runId]);
  const writer = new BatchWriter(database.pool);
  await writer.write(turnEntry(rollout, 0));
  const { rows } = await database.pool.query("select sampled_tokens from runs where id = $1", [run.runId]);
  expect(rows[0].sampled_tokens).toBe("9007199254741033");
  await writer.close();
});
