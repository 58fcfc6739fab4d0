/**
 * Rows of the memory task at the lengths it is meant for, through the real loop, tool, tokenizer and row builder; only the policy is
 * a script. It finds the facts in the part it is shown and carries them on in its memory, so it answers right only if every
 * part was shown, once, with what was remembered.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dialects } from "@rolldeck/agent/core/registry";
import { runRollout } from "@rolldeck/agent/core/run-rollout";
import type { Trajectory } from "@rolldeck/agent/core/trajectory";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { rolloutSpec, scriptedRollout } from "@rolldeck/agent/testing/scripted-rollout";
import { tokenizerFolders } from "@rolldeck/agent/testing/tokenizer-folders";
import type { TaskInstance } from "@rolldeck/contracts/ports/task";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { buildUpdate } from "@rolldeck/rl/build-update";
import { decodeMask } from "@rolldeck/rl/mask-reasons";
import { allTokens, positionsOf, rangesLength } from "@rolldeck/rl/trajectory-tokens";
import { evaluateTokens, generateRows, passagesOf, trainTokens, writeRows } from "@rolldeck/tasks/memory/generate-rows";
import { memory } from "@rolldeck/tasks/memory/task";
import { MemoryState } from "@rolldeck/tools/memory-messages";
import { findTool } from "@rolldeck/tools/registry";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { toolSpecs } from "./rollout-task.ts";

vi.setConfig({ testTimeout: 60_000 });

let tokenizer: Tokenizer;
const home = mkdtempSync(join(tmpdir(), "memory-rows-"));
beforeAll(async () => {
  tokenizer = await loadTokenizer(tokenizerFolders.qwen3());
  const words = [
    "harbour",
    "copper",
    "seldom",
    "lantern",
    "winding",
    "across",
    "meadow",
    "quietly",
    "stone",
    "the",
    "of",
    "and",
  ];
  const sentence = (n: number) =>
    Array.from({ length: 14 }, (_, at) => words[(n * 7 + at * at * 3) % words.length]).join(" ");
  const paragraphs = Array.from({ length: 400 }, (_, n) =>
    Array.from({ length: 6 }, (_, s) => `${sentence(n * 6 + s)}.`).join(" "),
  );
  writeFileSync(join(home, "local.txt"), paragraphs.join("\n\n"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** One generated row of that length, as the task gives it. */
async function longInstance(tokens: number, maxChunkTokens: number): Promise<TaskInstance> {
  const path = join(home, `${tokens}.jsonl`);
  const passages = await passagesOf(join(home, "local.txt"));
  await writeRows(path, generateRows({ rows: 1, tokens, seed: "rows", passages }));
  const task = await memory.open({ dataset: path, options: { heldOutEvery: 0, maxChunkTokens } });
  return task.instance("train", 0);
}

/** Reads with regular expressions what a model would read; its memory is the facts, one a line. */
function nextCall(prompt: string): { name: string; arguments: Record<string, string> } {
  const work = /the person who built the (.+)\?/.exec(prompt)?.[1] ?? "?";
  const known = [...prompt.matchAll(/^(?:The .+ was built by .+\.|For as long as .+ the number \d+\.)$/gm)].map(
    ([fact]) => fact,
  );
  const facts = [...new Set(known)];
  if (!prompt.includes("parts are read."))
    return { name: "next_with_summary", arguments: { summary: facts.join("\n") } };
  const maker = /was built by (.+), who/.exec(facts.find((fact) => fact.startsWith(`The ${work} `)) ?? "")?.[1] ?? "?";
  const number = /the number (\d+)/.exec(facts.find((fact) => fact.includes(`locker of ${maker} `)) ?? "")?.[1] ?? "?";
  return { name: "finish", arguments: { answer: number } };
}

async function play(instance: TaskInstance) {
  const tools = memory.tools.flatMap((name) => findTool(name) ?? []);
  const dialect = dialects.hermes;
  const scripted = scriptedRollout({
    tokenizer,
    policy: (_, { prompt }) => dialect.renderCalls([nextCall(tokenizer.decode(prompt.toArray()))]),
  });
  const ports: typeof scripted = {
    ...scripted,
    callTool: async (call, agent, signal) => {
      const tool = tools.find(({ name }) => name === call.name);
      if (tool === undefined) throw new Error(`no tool ${call.name}`);
      return tool.call(call.arguments, { instance: instance.state, agent, signal, deadlineMs: 1000 });
    },
  };
  const agent = {
    maxContextTokens: memory.defaults.maxContextTokens,
    describeTools: true,
    sampling: { maxTokensPerTurn: 4096 },
  };
  const spec = rolloutSpec(tokenizer, agent, {
    dialect,
    tools: toolSpecs(tools),
    messages: memory.messages(instance),
    maxTurns: memory.defaults.maxTurns,
  });
  const end = await runRollout(spec, null, ports, new AbortController().signal);
  return { end, trajectory: scripted.stored(), prompts: scripted.requests.map(({ prompt }) => prompt.toArray()) };
}

function rowsOf(trajectory: Trajectory) {
  const { algorithm } = RunConfig.parse({ taskSets: [{ name: "memory" }], algorithm: { groupSize: 2 } });
  const rollout = (rolloutId: string, reward: number) => ({
    rolloutId,
    attempt: 1,
    ending: "finish_tool" as const,
    reward,
    trajectory,
  });
  const group = { groupId: "g", rollouts: [rollout("right", 1), rollout("wrong", 0)] };
  const { rows } = buildUpdate({ groups: [group], algorithm, maxContextTokens: memory.defaults.maxContextTokens });
  return rows.filter(({ rolloutId }) => rolloutId === "right");
}

describe.each([
  ["training", trainTokens],
  ["evaluation", evaluateTokens],
])("a row of the length of %s", (_, tokens) => {
  test("is read in parts of at most 4k tokens, each seen once, and answered from memory", async () => {
    const instance = await longInstance(tokens, 4_000);
    const { chunks, question } = MemoryState.parse(instance.state);
    const sizes = chunks.map((chunk) => tokenizer.encode(chunk).length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4_000);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(tokens * 0.75);
    const { end, trajectory, prompts } = await play(instance);
    expect(end).toMatchObject({ ending: "finish_tool", turns: chunks.length + 1 });
    const scene = { signal: new AbortController().signal, judge: null };
    expect(await memory.verify(instance, { ...end, toolCalls: [] }, scene)).toMatchObject({ reward: 1, success: true });
    // Every context: the question, the part and the memory, and of the other parts nothing.
    for (const [turn, prompt] of prompts.entries()) {
      const text = tokenizer.decode(prompt);
      expect(text).toContain(question);
      expect(chunks.flatMap((chunk, part) => (text.includes(chunk.trim()) ? [part] : []))).toEqual(
        turn < chunks.length ? [turn] : [],
      );
      expect(prompt.length).toBeLessThan(4_000 + 2_000);
    }
    // Every part's end is a reset; the last turn's is none.
    expect(trajectory.turns.map(({ nextRanges }) => nextRanges !== null)).toEqual(chunks.map(() => true).concat(false));
    // What all contexts begin with is stored once.
    const stored = trajectory.segments.reduce((sum, segment) => sum + segment.tokens.length, 0);
    const sent = prompts.reduce((sum, prompt) => sum + prompt.length, 0);
    expect(stored).toBeLessThan(sent);
  });

  test("trains one row for each context, on what was sampled there and nothing else, all with the trajectory's advantage", async () => {
    const instance = await longInstance(tokens, 4_000);
    const { trajectory, prompts } = await play(instance);
    const resets = trajectory.turns.filter(({ nextRanges }) => nextRanges !== null).length;
    const rows = rowsOf(trajectory);
    expect(rows).toHaveLength(resets + 1);
    const ids = allTokens(trajectory.segments);
    for (const [turn, row] of rows.entries()) {
      const sampled = trajectory.segments[trajectory.turns[turn]?.sampledSegment ?? -1]?.tokens ?? [];
      const own = [...positionsOf(row.ranges)].map((at) => ids[at]);
      expect(own).toEqual([...(prompts[turn] ?? []), ...sampled]);
      const mask = decodeMask(row.mask);
      expect(mask).toHaveLength(rangesLength(row.ranges));
      expect(own.filter((_, at) => mask[at] === null)).toEqual([...sampled]);
      expect(mask.slice(0, prompts[turn]?.length).every((reason) => reason !== null)).toBe(true);
      expect(row.sent).toBe(true);
    }
    expect(new Set(rows.map(({ advantage }) => advantage)).size).toBe(1);
    expect(new Set(rows.map(({ scale }) => scale)).size).toBe(1);
  });
});
