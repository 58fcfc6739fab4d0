import { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../testing/postgres.ts";
import { seedAgentTrajectory } from "../../testing/seed-agent-trajectory.ts";
import { type SeededStep, seedRun, seedStep, seedTrainingRow, seedTrajectory } from "../../testing/seed-run.ts";
import { readAttemptRef } from "./attempt-ref.ts";
import { readRollout } from "./read-rollout.ts";
import { readTokens } from "./read-tokens.ts";
import { readTurns } from "./read-turns.ts";
import { annotate } from "./training-annotations.ts";

let database: TestDatabase;
let runId: string;
let step: SeededStep;
beforeAll(async () => {
  database = await createTestDatabase();
  runId = await seedRun(database.pool);
  step = await seedStep(database.pool, runId, {
    step: 1,
    rollouts: [
      { reward: 1, ending: "answer" },
      { reward: 0, ending: "turn_limit" },
      { reward: null, ending: null },
    ],
  });
});
afterAll(() => database.drop());

const text = (tokens: readonly number[]): string => Buffer.from(tokens).toString();
const rollout = (sample: number): string => step.rolloutIds[sample] ?? "";

describe("a trained rollout", () => {
  beforeAll(async () => {
    await seedTrajectory(
      database.pool,
      rollout(0),
      [
        { origin: "template", text: "<u>" },
        { origin: "observation", text: "find" },
        { origin: "sampled", text: "get" },
        { origin: "observation", text: "9!" },
        { origin: "sampled", text: "ok" },
        { origin: "observation", text: "end" },
      ],
      { call: { output: "9!" } },
    );
    await seedTrainingRow(database.pool, {
      runId,
      stepId: step.stepId,
      rolloutId: rollout(0),
      row: 0,
      ranges: [0, 14],
      mask: [
        { count: 3, reason: "template" },
        { count: 4, reason: "observation" },
        { count: 3, reason: null },
        { count: 2, reason: "observation" },
        { count: 2, reason: null },
      ],
      advantage: 0.5,
      trainerLogprobs: Array.from({ length: 13 }, (_, at) => -at),
    });
  });

  it("gives each turn what it added, its calls and its place", async () => {
    const { turns, more } = await readTurns(database.pool, { rolloutId: rollout(0), attempt: 1, after: -1, limit: 10 });
    expect(more).toBe(false);
    expect(turns.map((turn) => turn.added.map((part) => [part.origin, text(part.tokens)]))).toEqual([
      [
        ["template", "<u>"],
        ["observation", "find"],
      ],
      [["observation", "9!"]],
    ]);
    expect(turns.map((turn) => text(turn.sampled.tokens))).toEqual(["get", "ok"]);
    expect(turns.map((turn) => turn.sampledRange)).toEqual([
      { start: 7, end: 10 },
      { start: 12, end: 14 },
    ]);
    const call = { index: 0, name: "get", arguments: { key: "a" }, state: "ended", output: "9!", error: null };
    expect(turns[0]?.calls).toEqual([{ ...call, durationMs: 1.5, wholeBytes: null, artifacts: [] }]);
    expect(turns[0]).toMatchObject({ thread: "", notes: [], contextChange: null });
  });

  it("pages turns", async () => {
    const first = await readTurns(database.pool, { rolloutId: rollout(0), attempt: 1, after: -1, limit: 1 });
    expect(first).toMatchObject({ more: true, turns: [{ turn: 0 }] });
    const second = await readTurns(database.pool, { rolloutId: rollout(0), attempt: 1, after: 0, limit: 1 });
    expect(second).toMatchObject({ more: false, turns: [{ turn: 1 }] });
    expect(second.turns[0]?.added).toHaveLength(1);
  });

  it("gives tokens with reasons, advantages and the trainer's logprobs, null where missing", async () => {
    const page = await readTokens(database.pool, { rolloutId: rollout(0), attempt: 1, start: 0 });
    expect(text(page.ids)).toBe("<u>findget9!okend");
    expect(page.total).toBe(17);
    expect(page.turns).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
    expect(page.maskReasons.slice(6, 10)).toEqual(["observation", null, null, null]);
    expect(page.maskReasons.at(-1)).toBe("observation");
    expect(page.advantages.slice(6, 11)).toEqual([null, 0.5, 0.5, 0.5, null]);
    expect(page.logprobs.slice(6, 11)).toEqual([null, null, -0.5, -0.5, null]);
    expect(page.trainerLogprobs.slice(0, 3)).toEqual([null, -0, -1]);
    expect(page.trainerLogprobs[14]).toBeNull();
    expect(page.policyVersions.slice(9, 11)).toEqual([3, null]);
    const part = await readTokens(database.pool, { rolloutId: rollout(0), attempt: 1, start: 8, end: 13 });
    expect(text(part.ids)).toBe("et9!o");
    for (const key of ["turns", "advantages", "maskReasons", "logprobs", "trainerLogprobs", "origins"] as const)
      expect(part[key]).toEqual(page[key].slice(8, 13));
    expect((await readTokens(database.pool, { rolloutId: rollout(0), attempt: 1, start: 99, end: 3 })).ids).toEqual([]);
  });

  it("says what became of it", async () => {
    const detail = RolloutDetail.parse(await readRollout(database.pool, rollout(0)));
    expect(detail.fate).toEqual({ state: "trained", reason: null, advantage: 0.5, rows: 1 });
    expect(detail.tokens).toEqual({ sampled: 5, observation: 9, template: 3, hint: 0, total: 17 });
    expect(detail.siblings.map((sibling) => sibling.reward)).toEqual([1, 0, null]);
    expect(detail.policyVersions).toEqual([3]);
    expect(detail.attempts).toMatchObject([{ attempt: 1, turns: 2 }]);
    expect(detail.rewardParts).toEqual({ answer: 1 });
  });
});

describe("a rollout without training rows", () => {
  it("says why its tokens will not be trained", async () => {
    await seedTrajectory(database.pool, rollout(1), [
      { origin: "template", text: "ab" },
      { origin: "sampled", text: "cd" },
    ]);
    const page = await readTokens(database.pool, { rolloutId: rollout(1), attempt: 1, start: 0 });
    expect(page.maskReasons).toEqual(["template", "template", "ending-cut", "ending-cut"]);
    expect((await readRollout(database.pool, rollout(1))).fate).toMatchObject({
      state: "not-trained",
      reason: "turn_limit",
    });
  });
  it("may still be trained while it runs", async () => {
    await seedTrajectory(database.pool, rollout(2), [{ origin: "sampled", text: "x" }]);
    expect((await readTokens(database.pool, { rolloutId: rollout(2), attempt: 1, start: 0 })).maskReasons).toEqual([
      null,
    ]);
  });
  it("knows its attempts", async () => {
    expect((await readAttemptRef(database.pool, rollout(2))).attempt).toBe(1);
    await expect(readAttemptRef(database.pool, rollout(2), 2)).rejects.toBeInstanceOf(NotFoundError);
    await expect(readRollout(database.pool, "nothinghere")).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe("a rollout whose tools change its context", () => {
  let rolloutId: string;
  beforeAll(async () => {
    const more = await seedStep(database.pool, runId, { step: 2, rollouts: [{ reward: 1, ending: "answer" }] });
    rolloutId = more.rolloutIds[0] ?? "";
    await seedAgentTrajectory(database.pool, rolloutId, [
      {
        added: [
          { origin: "template", text: "<u>" },
          { origin: "observation", text: "question" },
        ],
        says: "call",
        notes: [{ kind: "repair", message: "a quote was added" }],
        calls: [{ name: "bash", output: "cut", wholeBytes: 3_000_000_000, artifact: "all of it" }, { name: "think" }],
      },
      {
        added: [{ origin: "observation", text: "cut" }],
        says: "next",
        // The question stays, a memory comes new.
        context: { keep: [0, 1], added: [{ origin: "observation", text: "memory" }] },
        calls: [{ name: "think" }, { name: "next_with_summary" }],
      },
      { thread: "1.0", added: [{ origin: "template", text: "sub" }], says: "ok" },
      {
        added: [{ origin: "hint", text: "2 left" }],
        says: "drop",
        calls: [{ name: "drop" }],
        context: { keep: [0, 1, 9], added: [] },
      },
      { thread: "1.0", added: [{ origin: "observation", text: "more" }], says: "done" },
      { added: [], says: "end" },
    ]);
  });
  const pageOf = (after: number, limit: number) => readTurns(database.pool, { rolloutId, attempt: 1, after, limit });

  it("shows in each turn what its own thread had not seen, once", async () => {
    const { turns } = await pageOf(-1, 10);
    expect(
      turns.map(({ thread, added }) => [thread, added.map((part) => `${part.origin} ${text(part.tokens)}`)]),
    ).toEqual([
      ["", ["template <u>", "observation question"]],
      ["", ["observation cut"]],
      ["1.0", ["template sub"]],
      ["", ["observation memory", "hint 2 left"]],
      ["1.0", ["observation more"]],
      ["", []],
    ]);
    const pages = [await pageOf(-1, 2), await pageOf(1, 2), await pageOf(3, 2)];
    expect(pages.flatMap((page) => page.turns)).toEqual(turns);
  });

  it("counts what each change dropped, kept and added", async () => {
    const { turns } = await pageOf(-1, 10);
    expect(turns.map((turn) => turn.contextChange)).toEqual([
      null,
      { kind: "restart", keptTokens: 11, droppedTokens: 11, newTokens: 6 },
      null,
      { kind: "shortened", keptTokens: 15, droppedTokens: 12, newTokens: 0 },
      null,
      null,
    ]);
  });

  it("names what is kept in full, with sizes beyond four bytes", async () => {
    const { turns } = await pageOf(-1, 1);
    expect(turns[0]?.notes).toEqual([{ kind: "repair", message: "a quote was added" }]);
    expect(turns[0]?.calls[0]).toMatchObject({
      wholeBytes: 3_000_000_000,
      artifacts: [{ name: "output.txt", mediaType: "text/plain; charset=utf-8", bytes: 9 }],
    });
    expect(turns[0]?.calls[1]).toMatchObject({ wholeBytes: null, artifacts: [] });
  });
});

describe("annotations", () => {
  const base = { advantage: 1, sent: true, trainerLogprobs: null, stepState: "done" as const };
  it("take the row that was made for a token when several hold it", () => {
    const rows = [
      {
        ...base,
        ranges: [{ start: 0, end: 3 }],
        mask: [
          { count: 2, reason: "template" as const },
          { count: 1, reason: null },
        ],
      },
      {
        ...base,
        advantage: 2,
        ranges: [
          { start: 0, end: 1 },
          { start: 2, end: 5 },
        ],
        mask: [
          { count: 1, reason: "template" as const },
          { count: 1, reason: "other-row" as const },
          { count: 2, reason: null },
        ],
      },
    ];
    expect(annotate(rows, 0, 6)).toMatchObject({
      reasons: ["template", "template", null, null, null, undefined],
      advantages: [null, null, 1, 2, 2, null],
    });
  });
  it("call a row without a forward pass what it is", () => {
    const rows = [{ ...base, sent: false, ranges: [{ start: 0, end: 1 }], mask: [{ count: 1, reason: null }] }];
    expect(annotate(rows, 0, 1)).toMatchObject({ reasons: ["zero-variance"], advantages: [null] });
  });
});
