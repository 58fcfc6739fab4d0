import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { maskReasons } from "@rolldeck/contracts/endings";
import { ConflictError, NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { type SeededStep, seedRun, seedStep, seedTrainingRow, seedTrajectory } from "../../testing/seed-run.ts";
import { encodeLogprobs } from "../hot/token-codec.ts";
import { type BatchQuery, measureBatch, readBatch } from "./read-batch.ts";

let database: TestDatabase;
let runId: string;
let step: SeededStep;

const bytes = (text: string): number[] => [...Buffer.from(text)];
/** Three tokens of context, then four sampled ones, of which the first has no logprob. */
const wholeMask = [
  { count: 3, reason: "template" },
  { count: 1, reason: "no-logprob" },
  { count: 3, reason: null },
] as const;

beforeAll(async () => {
  database = await createTestDatabase();
  const { pool } = database;
  runId = await seedRun(pool);
  await seedStep(pool, runId, { step: 1, rollouts: [] });
  step = await seedStep(pool, runId, {
    step: 2,
    rollouts: [
      { reward: 1, ending: "answer" },
      { reward: null, ending: "infrastructure" },
    ],
  });
  for (const rolloutId of step.rolloutIds)
    await seedTrajectory(pool, rolloutId, [
      { origin: "template", text: "abc" },
      { origin: "sampled", text: "defg" },
      { origin: "observation", text: "hi" },
      { origin: "sampled", text: "jk" },
    ]);
  const [first = "", second = ""] = step.rolloutIds;
  const base = { runId, stepId: step.stepId, advantage: 0.5 };
  await seedTrainingRow(pool, { ...base, rolloutId: first, row: 0, ranges: [0, 7], mask: wholeMask });
  // History was dropped: the second row is made of two ranges.
  await seedTrainingRow(pool, {
    ...base,
    rolloutId: first,
    row: 1,
    ranges: [0, 3, 7, 11],
    mask: [
      { count: 3, reason: "template" },
      { count: 2, reason: "observation" },
      { count: 1, reason: "no-logprob" },
      { count: 1, reason: null },
    ],
  });
  await seedTrainingRow(pool, {
    ...base,
    rolloutId: second,
    row: 2,
    ranges: [0, 7],
    mask: [
      { count: 3, reason: "template" },
      { count: 4, reason: "ending-failed" },
    ],
    advantage: 0,
    sent: false,
  });
});
afterAll(() => database.drop());

const read = (query: Partial<BatchQuery> = {}) =>
  readBatch(database.pool, { runId, step: 2, after: -1, limit: 100, maxTokens: 1000, ...query });

describe("a step's batch", () => {
  it("has every stored number of a row, and null where there is none", async () => {
    const { rows, next } = await read();
    expect(next).toBeNull();
    expect(rows.map(({ row, rolloutId }) => [row, step.rolloutIds.indexOf(rolloutId)])).toEqual([
      [0, 0],
      [1, 0],
      [2, 1],
    ]);
    expect(rows[0]).toEqual({
      runId,
      step: 2,
      row: 0,
      groupId: step.groupId,
      task: "key-chain",
      instanceId: "train-7",
      sample: 0,
      rolloutId: step.rolloutIds[0] ?? "",
      attempt: 1,
      ending: "answer",
      reward: 1,
      advantage: 0.5,
      scale: 0.1,
      sent: true,
      learnerVersion: 1,
      tokens: bytes("abcdefg"),
      mask: [...wholeMask],
      samplerLogprobs: [null, null, null, null, -0.5, -0.5, -0.5],
      trainerLogprobs: null,
      refLogprobs: null,
      tokenWeights: null,
      policyVersions: [null, null, null, 3, 3, 3, 3],
    } satisfies BatchRow);
    expect(rows[1]).toMatchObject({
      tokens: bytes("abchijk"),
      policyVersions: [null, null, null, null, null, 3, 3],
      samplerLogprobs: [null, null, null, null, null, null, -0.5],
    });
    // An infrastructure failure has no reward, and not 0.
    expect(rows[2]).toMatchObject({ ending: "infrastructure", reward: null, sent: false, sample: 1 });
  });

  it("gives the corrected mask, its weights, and what the trainer and the reference said", async () => {
    const corrected = [3, maskReasons.indexOf("template"), 1, maskReasons.indexOf("no-logprob"), 2, -1];
    await database.pool.query(
      `update training_rows set corrected_mask = $2, token_weights = $3, trainer_logprobs = $4, ref_logprobs = $5
       where step_id = $1 and row = 0`,
      [
        step.stepId,
        [...corrected, 1, maskReasons.indexOf("off-policy")],
        encodeLogprobs([0, 0, 0, 1.5, 0.5, 0]),
        encodeLogprobs([-3, -3, -3, -0.25, -0.25, Number.NEGATIVE_INFINITY]),
        encodeLogprobs([null, null, null, -1, -1, -1]),
      ],
    );
    const [row] = (await read({ limit: 1 })).rows;
    expect(row?.mask.at(-1)).toEqual({ count: 1, reason: "off-policy" });
    expect(row?.tokenWeights).toEqual([0, 0, 0, 0, 1.5, 0.5, 0]);
    expect(row?.trainerLogprobs).toEqual([null, -3, -3, -3, -0.25, -0.25, null]);
    expect(row?.refLogprobs).toEqual([null, null, null, null, -1, -1, -1]);
  });

  it("gives the trainer's logprobs also where nothing was corrected", async () => {
    await database.pool.query("update training_rows set trainer_logprobs = $2 where step_id = $1 and row = 1", [
      step.stepId,
      encodeLogprobs([-1, -1, -1, -1, -1, -0.75]),
    ]);
    const [row] = (await read({ after: 0, limit: 1 })).rows;
    expect(row).toMatchObject({ trainerLogprobs: [null, -1, -1, -1, -1, -1, -0.75], tokenWeights: null });
  });

  it("comes in pages by rows and by tokens, and no row is lost or given twice", async () => {
    for (const size of [{ limit: 1 }, { limit: 2 }, { maxTokens: 14 }, { maxTokens: 13 }, { maxTokens: 1 }]) {
      const seen: number[] = [];
      let after: number | null = -1;
      while (after !== null) {
        const page: Awaited<ReturnType<typeof read>> = await read({ ...size, after });
        seen.push(...page.rows.map(({ row }) => row));
        after = page.next;
      }
      expect(seen).toEqual([0, 1, 2]);
    }
    expect((await read({ maxTokens: 14 })).rows).toHaveLength(2);
    expect(await read({ after: 2 })).toEqual({ rows: [], next: null });
  });

  it("is measured before it is read", async () => {
    const range = { runId, step: 2, after: -1, limit: 100 };
    expect(await measureBatch(database.pool, range)).toEqual({ rows: 3, tokens: 21, next: null });
    expect(await measureBatch(database.pool, { ...range, limit: 2 })).toEqual({ rows: 2, tokens: 14, next: 1 });
    expect(await measureBatch(database.pool, { ...range, after: 2 })).toEqual({ rows: 0, tokens: 0, next: null });
    await expect(measureBatch(database.pool, { ...range, step: 1 })).rejects.toBeInstanceOf(ConflictError);
  });

  it("is not there for a run or step that is not, nor for a step without an update", async () => {
    await expect(read({ runId: "nowhere00" })).rejects.toThrow(new NotFoundError("run", "nowhere00"));
    await expect(read({ step: 9 })).rejects.toThrow(new NotFoundError("step", "9"));
    await seedStep(database.pool, runId, { step: 3, state: "gathering", rollouts: [] });
    const failed = await seedStep(database.pool, runId, {
      step: 4,
      state: "failed",
      rollouts: [{ reward: 1, ending: "answer" }],
    });
    const [rolloutId = ""] = failed.rolloutIds;
    const row = { runId, stepId: failed.stepId, rolloutId, row: 0, ranges: [0, 7], mask: wholeMask, advantage: 1 };
    await seedTrainingRow(database.pool, row);
    for (const [number, why] of [
      [1, "ended without"],
      [3, "still gathering"],
      [4, "it failed"],
    ] as const) {
      const refused = read({ step: number });
      await expect(refused).rejects.toBeInstanceOf(ConflictError);
      await expect(refused).rejects.toThrow(why);
    }
  });

  it("hands out nothing where what is stored contradicts itself", async () => {
    const broken = await seedStep(database.pool, runId, { step: 5, rollouts: [{ reward: 1, ending: "answer" }] });
    const [rolloutId = ""] = broken.rolloutIds;
    await seedTrajectory(database.pool, rolloutId, [
      { origin: "template", text: "abc" },
      { origin: "sampled", text: "defg" },
    ]);
    const mask = [
      { count: 3, reason: "template" },
      { count: 4, reason: null },
    ] as const;
    await seedTrainingRow(database.pool, {
      ...{ runId, stepId: broken.stepId, rolloutId, row: 0, ranges: [0, 7], mask, advantage: 1 },
    });
    await expect(read({ step: 5 })).rejects.toThrow("row 0 of step 5: samplerLogprobs.3");
  });
});
