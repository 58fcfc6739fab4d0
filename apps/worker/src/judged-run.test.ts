/** Answers that a language model judges, on real parts: its clear word is the reward, and what is unclear is asked again. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CompletionServer, startCompletionServer } from "@rolldeck/backends/testing/completion-server";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Rig, smokeConfig, startRig } from "../testing/rig.ts";

// Whole runs on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

let home: string;
let rig: Rig | null = null;
let judge: CompletionServer | null = null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "rolldeck-judged-"));
});
afterEach(async () => {
  await rig?.close();
  await judge?.close();
  rig = null;
  judge = null;
  rmSync(home, { recursive: true, force: true });
});

test("a right answer in other words earns 1, a wrong one 0; a judge that mumbles once is asked again", async () => {
  const rows = ["Which river?", "Which hill?"].map((question) => ({ question, context: "Paris.", answers: ["Seine"] }));
  writeFileSync(join(home, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  let mumbles = 1;
  judge = await startCompletionServer({
    answer: ({ body }) => {
      const asked = JSON.stringify(body.messages);
      const usage = { promptTokens: 100, completionTokens: 3 };
      if (mumbles-- > 0) return { content: "Well, it depends.", usage };
      return { content: asked.includes("river of Paris") ? "CORRECT" : "Incorrect.", usage };
    },
  });
  const endpoint = { name: "judge", kind: "openai-chat", urls: [judge.url], model: "big", judge: true };
  writeFileSync(join(home, "endpoints.json"), JSON.stringify([endpoint]));
  rig = await startRig({
    env: { ROLLDECK_DATA_ROOTS: home, ROLLDECK_ENDPOINTS: join(home, "endpoints.json") },
    policy: ({ prompt }) => `[finish(answer="the ${prompt.includes("river?") ? "river" : "hill"} of Paris")]`,
  });
  const runId = await rig.launch(
    smokeConfig({
      kind: "evaluate",
      taskSets: [{ name: "memory", dataset: "rows.jsonl", options: { heldOutEvery: 1, verifier: "judge" } }],
      agent: { ...smokeConfig().agent, maxContextTokens: 4096, sampling: { maxTokensPerTurn: 64 } },
      evaluation: { samples: 2 },
    }),
  );
  expect(await rig.untilStatus(runId, "completed", "failed")).toBe("completed");
  const { rows: settled } = await rig.database.pool.query(
    "select final_answer, reward, evaluate_failures from rollouts where run_id = $1 order by final_answer",
    [runId],
  );
  expect(settled.map(({ final_answer, reward }) => [final_answer, reward])).toEqual([
    ["the hill of Paris", 0],
    ["the river of Paris", 1],
  ]);
  expect(settled.reduce((sum, row) => sum + row.evaluate_failures, 0)).toBe(1);
  expect(judge.asks).toHaveLength(3);
  // The answer that was of no use was paid for too.
  expect(await rig.value("select judge_tokens::int from runs where id = $1", [runId])).toBe(309);
});
