/** A dialect writes a turn as the chat template of its family does, and reads what the template writes. */
import type { TurnParts } from "@rolldeck/contracts/ports/dialect";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { namedTemplate, tokenizerFolders } from "../../../testing/tokenizer-folders.ts";
import { loadTokenizer } from "../../io/load-tokenizer.ts";
import { type DialectName, dialects } from "../registry.ts";

const families: readonly [template: string, dialect: DialectName, end: string][] = [
  ["qwen2.5", "hermes", "<|im_end|>"],
  ["qwen3-acc-thinking", "hermes", "<|im_end|>"],
  ["qwen3-coder", "qwen-xml", "<|im_end|>"],
  ["llama-3.1", "llama-json", "<|eot_id|>"],
  // Its end mark is the folder's own.
  ["mistral-nemo", "mistral", "<|end|>"],
];
const get = { name: "get", arguments: { key: 'a"é\n🙂' } };
const finish = { name: "finish", arguments: { answer: "7" } };
const turns: readonly Required<TurnParts>[] = [
  { reasoning: "", content: "", calls: [get] },
  { reasoning: "", content: "I look it up.", calls: [get] },
  { reasoning: "", content: "", calls: [get, finish] },
  { reasoning: "", content: "Both at once.", calls: [get, finish] },
  { reasoning: "", content: "Just words.", calls: [] },
  { reasoning: "I wonder.", content: "So:", calls: [get] },
];

async function writtenBy(template: string, end: string, { reasoning, content, calls }: Required<TurnParts>) {
  const tokenizer = await loadTokenizer(tokenizerFolders["byte-bpe"](), { template: namedTemplate(template) });
  const question = { role: "user", content: "x" } as const;
  const toolCalls = calls.map((call) => ({ id: "", name: call.name, arguments: call.arguments }));
  const answer = { role: "assistant", content, reasoning, toolCalls } as const;
  const prompt = tokenizer.decode(tokenizer.render([question], { generationPrompt: true }));
  const whole = tokenizer.decode(tokenizer.render([question, answer], { generationPrompt: false }));
  expect(whole.startsWith(prompt)).toBe(true);
  const text = whole.slice(prompt.length);
  return text.includes(end) ? text.slice(0, text.indexOf(end)) : text;
}

describe.each(families)("template %s and dialect %s", (template, dialect, end) => {
  const thinks = template.startsWith("qwen3-acc");
  it.each(turns.filter(({ reasoning }) => thinks || reasoning === ""))("$reasoning $content $calls", async (turn) => {
    const text = await writtenBy(template, end, turn);
    const read = dialects[dialect].parse(text, getAndFinish);
    expect({ ...read, calls: read.calls.map(({ name, arguments: args }) => ({ name, arguments: args })) }).toEqual({
      ...turn,
      error: null,
      repairs: [],
    });
    // An empty thought before a turn without one is the template's own.
    expect(text.replace("<think>\n\n</think>\n\n", "")).toBe(dialects[dialect].renderTurn(turn));
  });
});
