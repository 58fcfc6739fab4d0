import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FinishedRollout, Task } from "@rolldeck/contracts/ports/task";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { localSearch } from "@rolldeck/tools/local-search";
import { afterAll, describe, expect, test } from "vitest";
import { search } from "./task.ts";

const home = mkdtempSync(join(tmpdir(), "search-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const jsonl = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const corpus = [
  { id: "1", title: "Marie Curie", text: "Marie Curie was born in Warsaw and worked in Paris." },
  { id: "2", title: "Warsaw", text: "Warsaw lies on the Vistula." },
  { id: "3", title: "Paris", text: "Paris lies on the Seine." },
];
const rows = [
  {
    id: "a",
    question: "Which river flows through the birthplace of Marie Curie?",
    golden_answers: ["Vistula", "the Vistula"],
  },
  { question: "Q2", target: "two", data_source: "nq" },
  { question: "Q3", reward_model: { style: "rule", ground_truth: { target: ["three"] } }, data_source: "hotpotqa" },
  { question: "Q4", reward_spec: { ground_truth: { target: "four" } }, prompt: [{ role: "user", content: "x" }] },
];

let count = 0;
/** A folder of its own. @returns path of the rows' file */
function dataset(rowsOf: readonly object[] = rows, documents: readonly object[] = corpus): string {
  const folder = join(home, String(count++));
  mkdirSync(folder);
  writeFileSync(join(folder, "rows.jsonl"), jsonl(rowsOf));
  writeFileSync(join(folder, "corpus.jsonl"), jsonl(documents));
  return join(folder, "rows.jsonl");
}
const open = (path: string | null, options: JsonObject = {}): Promise<Task> =>
  search.open({ dataset: path, options: { heldOutEvery: 2, ...options } });

const finished = (finalAnswer: string | null): FinishedRollout => ({
  ending: "finish_tool",
  finalAnswer,
  turns: 1,
  toolCalls: [],
});
const scene = { signal: new AbortController().signal, judge: null };
const agent = { turn: 0, maxTurns: 6, contextTokens: 0, maxContextTokens: 384, calls: [] };
const searched = async (task: Task, query: string): Promise<string> => {
  const { state } = task.instance("train", 0);
  const context = { instance: state, agent, signal: new AbortController().signal, deadlineMs: 1000 };
  return (await localSearch.call({ query }, context)).output;
};

describe("rows", () => {
  test("of every known shape, verbatim; other fields are left alone", async () => {
    const task = await open(dataset());
    const read = (["train", "evaluate"] as const).flatMap((split) =>
      Array.from({ length: task.size(split) ?? 0 }, (_, index) => task.instance(split, index)),
    );
    const place = (instanceId: string) => instanceId.replace(/-[0-9a-f]{8}$/, "");
    expect(
      read.map(({ instanceId, state }) => [place(instanceId), state.question, state.answers, state.source]),
    ).toEqual([
      ["train-0", rows[0]?.question, ["Vistula", "the Vistula"], null],
      ["train-1", "Q3", ["three"], "hotpotqa"],
      ["evaluate-0", "Q2", ["two"], "nq"],
      ["evaluate-1", "Q4", ["four"], null],
    ]);
    expect(() => task.instance("train", 2)).toThrow(RangeError);
  });

  test("a folder with its splits and its corpus", async () => {
    const folder = join(home, "folder");
    mkdirSync(folder);
    writeFileSync(join(folder, "train.jsonl"), jsonl(rows.slice(0, 3)));
    writeFileSync(join(folder, "evaluate.jsonl"), jsonl(rows.slice(3)));
    writeFileSync(join(folder, "docs.jsonl"), jsonl(corpus));
    const task = await search.open({ dataset: folder, options: { corpus: "docs.jsonl" } });
    expect([task.size("train"), task.size("evaluate")]).toEqual([3, 1]);
    expect(await searched(task, "vistula")).toBe("[2] Warsaw: Warsaw lies on the Vistula.");
  });

  test.each([
    [{ question: "Q" }, /line 1: golden_answers: a row needs answers/],
    [{ question: "Q", golden_answers: [] }, /line 1/],
    [{ question: "", target: "x" }, /line 1: question/],
    [{ golden_answers: ["x"] }, /line 1: question/],
    [{ question: "Q", target: 7 }, /line 1/],
  ])("%j is refused with its line", async (row, message) => {
    await expect(open(dataset([row]))).rejects.toThrow(message);
  });
});

describe("corpus", () => {
  test("its bad line is told at the opening", async () => {
    await expect(open(dataset(rows, [...corpus, { id: 1 }]))).rejects.toThrow(/options.corpus: corpus.jsonl line 4/);
    await expect(open(dataset(rows, []))).rejects.toThrow(/no documents/);
  });

  test.each(["missing.jsonl", "../0/corpus.jsonl", "/etc/passwd", "a/./b", "", "x\u0000y", "folder"])(
    "%j is no corpus beside the rows",
    async (name) => {
      const path = dataset();
      mkdirSync(join(path, "../folder"));
      await expect(open(path, { corpus: name })).rejects.toThrow(/options.corpus/);
    },
  );

  test("a link that leads out of the folder is refused", async () => {
    const path = dataset();
    writeFileSync(join(home, "outside.jsonl"), jsonl(corpus));
    symlinkSync(join(home, "outside.jsonl"), join(path, "../linked.jsonl"));
    await expect(open(path, { corpus: "linked.jsonl" })).rejects.toThrow(/leads out/);
  });

  test("no data set, unknown options", async () => {
    await expect(open(null)).rejects.toThrow(/dataset: search needs a data set/);
    await expect(open(dataset(), { top_k: 2 })).rejects.toThrow(/options.top_k/);
    await expect(open(dataset(), { topK: 0 })).rejects.toThrow(/options.topK/);
  });
});

describe("a question in two steps", () => {
  test("first the birthplace, then its river; topK and snippets as the options say", async () => {
    const task = await open(dataset(), { topK: 2, snippetCharacters: 50 });
    const [message] = task.messages(task.instance("train", 0));
    expect(message?.content).toContain(`Question: ${rows[0]?.question}`);
    const first = (await searched(task, "Marie Curie birthplace")).split("\n");
    expect(first).toEqual(["[1] Marie Curie: Marie Curie was born in Warsaw and worked in Paris…"]);
    expect((await searched(task, "Warsaw")).split("\n")[0]).toBe("[2] Warsaw: Warsaw lies on the Vistula.");
    expect((await searched(task, "lies on Warsaw Paris")).split("\n")).toHaveLength(2);
  });

  test("any accepted answer earns 1, in any case and with any article; others say what it was", async () => {
    const task = await open(dataset());
    const instance = task.instance("train", 0);
    for (const answer of ["vistula", "The Vistula.", " VISTULA\n"]) {
      expect(await task.verify(instance, finished(answer), scene)).toMatchObject({ reward: 1, success: true });
    }
    for (const answer of [null, "", "Seine", "Vistula river"]) {
      const verdict = await task.verify(instance, finished(answer), scene);
      expect(verdict).toMatchObject({ reward: 0, success: false });
      expect(verdict.notes).toContain('"Vistula" or "the Vistula"');
    }
    await expect(task.verify({ ...instance, state: {} }, finished("x"), scene)).rejects.toMatchObject({
      boundary: "verifier",
    });
  });

  test("with the tool off nothing is found", async () => {
    expect(await searched(await open(dataset(), { toolOff: true }), "Warsaw")).toBe("no results");
  });
});
