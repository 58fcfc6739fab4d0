import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FinishedRollout, Judge } from "@rolldeck/contracts/ports/task";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import {
  evaluateTokens,
  type GeneratedRow,
  generateRows,
  passagesOf,
  trainTokens,
  writeRows,
} from "./generate-rows.ts";
import { splitText } from "./split-text.ts";
import { memory } from "./task.ts";

const home = mkdtempSync(join(tmpdir(), "memory-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const write = (name: string, rows: readonly object[]): string => {
  const path = join(home, name);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return path;
};

describe("parts of a text", () => {
  const text = fc
    .array(
      fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\n\n", "\nDocument 3:", " ", ". ", "東京。", "👩‍👩‍👧")),
    )
    .map((pieces) => pieces.join(""));

  test("joined they are the text; none is empty, longer than the bound, or cut inside a character", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 60 }), (whole, maxBytes) => {
        const parts = splitText(whole, maxBytes);
        expect(parts.join("")).toBe(whole);
        for (const part of parts) {
          expect(part).not.toBe("");
          expect(Buffer.byteLength(part)).toBeLessThanOrEqual(maxBytes);
        }
        // No pair of surrogates is torn apart: a low one at a start follows no high one.
        parts.slice(1).forEach((part, at) => {
          const torn = /[\ud800-\udbff]$/.test(parts[at] ?? "") && /^[\udc00-\udfff]/.test(part);
          expect(torn).toBe(false);
        });
      }),
      { numRuns: 500 },
    );
  });

  test("documents stay whole where they fit, and a long one ends at the best border near", () => {
    const documents = ["Document 1:\nshort\n\n", "Document 2:\nalso\n\n", "Document 3:\nthird"];
    expect(splitText(documents.join(""), 40)).toEqual([`${documents[0]}${documents[1]}`, documents[2]]);
    expect(splitText("One two. Three four five six", 14)).toEqual(["One two. ", "Three four ", "five six"]);
    expect(splitText("x".repeat(10), 4)).toEqual(["xxxx", "xxxx", "xx"]);
    expect(splitText("", 100)).toEqual([]);
    expect(() => splitText("x", 3)).toThrow(RangeError);
  });
});

describe("rows", () => {
  const documents = ["Rome is old.", "Document 2:\nParis is on the Seine."];
  const open = (rows: readonly object[], options = {}) =>
    memory.open({ dataset: write("rows.jsonl", rows), options: { heldOutEvery: 2, ...options } });

  test("of documents or of one context; one answer or several; nothing else is read", async () => {
    const task = await open([
      { question: "Q1", documents, answers: ["Seine", "the Seine"], extra: { deep: [1] } },
      { question: "Q2", context: "Document 1:\nA.", answer: "A" },
    ]);
    expect([task.size("train"), task.size("evaluate")]).toEqual([1, 1]);
    expect(task.instance("train", 0)).toEqual({
      instanceId: expect.stringMatching(/^train-0-[0-9a-f]{8}$/),
      split: "train",
      index: 0,
      state: {
        question: "Q1",
        chunks: ["Document 1:\nRome is old.\n\nDocument 2:\nParis is on the Seine."],
        style: "full",
        answers: ["Seine", "the Seine"],
        verifier: "exact",
      },
    });
    expect(task.instance("evaluate", 0).state).toMatchObject({ chunks: ["Document 1:\nA."], answers: ["A"] });
    expect(() => task.instance("train", 1)).toThrow(RangeError);
  });

  test("the bound of a part follows the options", async () => {
    const task = await open(
      [
        { question: "Q", documents: Array(20).fill("word ".repeat(20)), answers: ["A"] },
        { question: "Q", context: "c", answer: "A" },
      ],
      {
        maxChunkTokens: 100,
        bytesPerToken: 2,
      },
    );
    const { chunks } = task.instance("train", 0).state;
    const sizes = (chunks as string[]).map((chunk) => Buffer.byteLength(chunk));
    expect(sizes.length).toBeGreaterThan(10);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
  });

  test.each([
    [{ question: "Q", answers: ["A"] }, /line 1: documents: /],
    [{ question: "Q", documents: ["d"], context: "c", answers: ["A"] }, /line 1: documents: /],
    [{ question: "Q", documents: ["d"] }, /line 1: answers: /],
    [{ question: "Q", documents: ["d"], answers: [] }, /line 1: answers/],
    [{ question: "", documents: ["d"], answers: ["A"] }, /line 1: question: /],
    [{ question: "Q", documents: [7], answers: ["A"] }, /line 1: documents/],
  ])("%j is refused by line and field", async (row, message) => {
    await expect(open([row])).rejects.toThrow(message);
  });

  test("says so when its verifier would ask a judge", async () => {
    const row = { question: "Q", context: "c", answer: "A" };
    expect((await open([row])).asksJudge).toBeUndefined();
    expect((await open([row], { verifier: "judge" })).asksJudge).toBe("options.verifier");
  });

  test("no data set, and options there are none of", async () => {
    await expect(memory.open({ dataset: null, options: {} })).rejects.toMatchObject({ issues: [{ path: "dataset" }] });
    await expect(open([], { chunkSize: 5 })).rejects.toMatchObject({ issues: [{ path: "options.chunkSize" }] });
    expect(memory.size()).toBe(0);
  });
});

describe("verifier", () => {
  const instance = (verifier: "exact" | "judge") => ({
    instanceId: "train-0",
    split: "train" as const,
    index: 0,
    state: { question: "Q", chunks: ["c"], style: "full", answers: ["The Seine"], verifier },
  });
  const rollout = (finalAnswer: string | null): FinishedRollout => ({
    ending: "finish_tool",
    finalAnswer,
    turns: 2,
    toolCalls: [],
  });
  const scene = (judge: Judge | null) => ({ signal: new AbortController().signal, judge });
  const saying = (reply: string): Judge => ({ ask: async () => reply });

  test("exact: a match is 1, anything else 0, and a judge is not asked", async () => {
    const refusing: Judge = { ask: () => Promise.reject(new Error("asked")) };
    expect((await memory.verify(instance("exact"), rollout("seine."), scene(refusing))).reward).toBe(1);
    expect((await memory.verify(instance("exact"), rollout("Thames"), scene(refusing))).reward).toBe(0);
    expect((await memory.verify(instance("exact"), rollout(null), scene(null))).success).toBe(false);
  });

  test("judge: its word counts; without one, or without a clear word, there is no reward", async () => {
    const verify = (answer: string | null, judge: Judge | null) =>
      memory.verify(instance("judge"), rollout(answer), scene(judge));
    expect((await verify("the river Seine", saying("CORRECT"))).reward).toBe(1);
    expect((await verify("the river Thames", saying("INCORRECT"))).reward).toBe(0);
    expect((await verify(" ", null)).reward).toBe(0);
    await expect(verify("the river Seine", null)).rejects.toMatchObject({ boundary: "verifier", code: "no_judge" });
    await expect(verify("x", saying("maybe"))).rejects.toMatchObject({ boundary: "verifier", code: "unclear_judge" });
  });

  test("an instance of another task is an error, never a 0", async () => {
    await expect(memory.verify({ ...instance("exact"), state: {} }, rollout("x"), scene(null))).rejects.toMatchObject({
      boundary: "verifier",
    });
  });
});

describe("generated rows", () => {
  const passages = Array.from({ length: 40 }, (_, n) => `Passage ${n}. ${"Some words to read past. ".repeat(20)}`);
  const textOf = (row: GeneratedRow) => row.documents.join("\n\n");

  test.each([trainTokens, evaluateTokens, 2_000])("of %i tokens are that long, and hold both hops once", (tokens) => {
    for (const row of generateRows({ rows: 3, tokens, seed: "s", passages })) {
      const bytes = Buffer.byteLength(row.documents.map((text, at) => `Document ${at + 1}:\n${text}`).join("\n\n"));
      expect(bytes).toBeLessThanOrEqual(tokens * 4.2);
      expect(bytes).toBeGreaterThan(tokens * 4.2 * 0.97 - 200);
      const text = textOf(row);
      const work = /built the (.+)\?/.exec(row.question)?.[1] ?? "?";
      const makers = [...text.matchAll(new RegExp(`The ${work} was built by (\\S+ \\S+),`, "g"))].map(
        ([, maker]) => maker,
      );
      expect(makers).toHaveLength(1);
      const numbers = [...text.matchAll(new RegExp(`locker of ${makers[0]} was opened by the number (\\d+)`, "g"))];
      expect(numbers.map(([, number]) => number)).toEqual(row.answers);
    }
  });

  test("are the same for a seed, others for another; too short a text is refused", () => {
    const rows = (seed: string) => [...generateRows({ rows: 4, tokens: 3_000, seed, passages })];
    expect(rows("a")).toEqual(rows("a"));
    expect(rows("a")).not.toEqual(rows("b"));
    expect(new Set(rows("a").map(({ answers }) => answers[0])).size).toBe(4);
    // Whatever is left at the end, characters of several bytes included.
    for (let tokens = 700; tokens < 712; tokens++)
      expect([...generateRows({ rows: 1, tokens, seed: "s", passages: ["東京", " 大阪"] })]).toHaveLength(1);
    expect(() => [...generateRows({ rows: 1, tokens: 50, seed: "a", passages })]).toThrow(RangeError);
    expect(() => [...generateRows({ rows: 1, tokens: 5_000, seed: "a", passages: [" "] })]).toThrow(RangeError);
  });

  test("from a text file to a data set that the task opens", async () => {
    const source = join(home, "text.txt");
    writeFileSync(source, `${passages.join("\n\n")}\n\n${"ü".repeat(9_000)}`);
    const found = await passagesOf(source);
    expect(Math.max(...found.map((passage) => passage.length))).toBeLessThanOrEqual(2_202);
    expect(found.join("").replace(/\s/gu, "")).toBe(`${passages.join("")}${"ü".repeat(9_000)}`.replace(/\s/gu, ""));
    const path = join(home, "generated.jsonl");
    await writeRows(path, generateRows({ rows: 10, tokens: 4_000, seed: "s", passages: found }));
    const task = await memory.open({ dataset: path, options: { maxChunkTokens: 1_000 } });
    expect([task.size("train"), task.size("evaluate")]).toEqual([9, 1]);
    expect((task.instance("evaluate", 0).state.chunks as string[]).length).toBeGreaterThanOrEqual(5);
  });
});
