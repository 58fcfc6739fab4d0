/** Search-R1 rows, opened as a run opens them, through the real turn loop and tool under a scripted policy. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { afterAll, beforeAll, expect, test } from "vitest";
import { playRollout, quickstartTokenizer } from "../../testing/play-rollout.ts";
import { OpenedTasks } from "../opened-tasks.ts";
import { tasks } from "../registry.ts";

const home = mkdtempSync(join(tmpdir(), "search-rollout-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const row = {
  id: "test_0",
  question: "which river flows through the birthplace of marie curie?",
  golden_answers: ["Vistula"],
  data_source: "hotpotqa",
  reward_model: { style: "rule", ground_truth: { target: ["Vistula"] } },
  extra_info: { split: "test", index: 0 },
};
const documents = [
  { id: "17", contents: '"Marie Curie"\nMarie Curie was born in Warsaw.' },
  { id: "23", contents: '"Warsaw"\nWarsaw lies on the Vistula river.' },
  { id: "42", contents: '"Paris"\nThe river of Paris is the Seine.' },
];
beforeAll(() => {
  mkdirSync(join(home, "hotpot"));
  writeFileSync(join(home, "hotpot/evaluate.jsonl"), `${JSON.stringify(row)}\n`);
  writeFileSync(join(home, "hotpot/corpus.jsonl"), documents.map((each) => `${JSON.stringify(each)}\n`).join(""));
});

const { agent, taskSets } = RunConfig.parse({
  taskSets: [{ name: "search", dataset: "hotpot", options: { topK: 1 } }],
  agent: { dialect: "hermes" },
});
const call = (name: string, args: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;

test("two searches and an answer: what the tool found is an observation, what was sampled is as sampled", async () => {
  const task = await new OpenedTasks({ tasks, dataRoots: [home] }).of({ taskSets }, 0);
  const tokenizer = await quickstartTokenizer();
  const script = [
    call("local_search", { query: "Marie Curie" }),
    call("local_search", { query: "Warsaw river" }),
    call("finish", { answer: "the vistula" }),
  ];
  let prompt = "";
  const { end, success, turns, segments } = await playRollout({
    task,
    split: "evaluate",
    index: 0,
    agent,
    tokenizer,
    policy: (text) => {
      prompt = text;
      return script.shift() ?? "";
    },
  });
  expect(end).toMatchObject({ ending: "finish_tool", finalAnswer: "the vistula", turns: 3 });
  expect(success).toBe(true);
  expect(prompt).toContain(row.question);
  expect(prompt).toContain("local_search");
  expect(turns.map(({ calls }) => calls.map(({ name }) => name))).toEqual([
    ["local_search"],
    ["local_search"],
    ["finish"],
  ]);
  const observations = segments
    .filter(({ origin }) => origin === "observation")
    .map(({ tokens }) => tokenizer.decode(tokens));
  expect(observations[0]).toContain("[17] Marie Curie: Marie Curie was born in Warsaw.");
  expect(observations[1]).toContain("[23] Warsaw: Warsaw lies on the Vistula river.");
  const sampled = segments.filter(({ origin }) => origin === "sampled");
  expect(sampled.map(({ tokens, logprobs }) => logprobs?.length === tokens.length)).toEqual([true, true, true]);
});
