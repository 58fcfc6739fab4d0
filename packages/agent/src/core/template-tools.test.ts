import type { NamedCall } from "@rolldeck/contracts/ports/dialect";
import { expect, it } from "vitest";
import { quickstartFolder } from "../../testing/scripted-rollout.ts";
import { namedTemplate, tokenizerFolders } from "../../testing/tokenizer-folders.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { dialects } from "./registry.ts";
import { firstPrompt, sampledText } from "./render-conversation.ts";
import { calledTokens, describesTools } from "./template-tools.ts";

const own = async (folder: keyof typeof tokenizerFolders, name?: string) =>
  loadTokenizer(tokenizerFolders[folder](), name === undefined ? {} : { template: namedTemplate(name) });
const tools = [{ name: "get", description: "Looks a key up", parameters: { type: "object", properties: {} } }];
const messages = [{ role: "user" as const, content: "find a" }];

it.each([
  ["qwen3", undefined, "hermes"],
  ["qwen3", "qwen3-acc-thinking", "hermes"],
  ["qwen3", "qwen2.5", "hermes"],
  ["qwen3", "qwen3-coder", "qwen-xml"],
  ["llama-3.1", "llama-3.1", "llama-json"],
  ["mistral-nemo", "mistral-nemo", "mistral"],
] as const)(
  "%s (template %s) describes tools in the dialect %s, and in no other family's",
  async (folder, name, dialect) => {
    const tokenizer = await own(folder, name);
    const speaks = Object.values(dialects).filter((each) => describesTools(tokenizer, each));
    expect(speaks.map((each) => each.name)).toContain(dialect);
    expect(speaks.map((each) => each.name)).toEqual([dialect]);
    const prompt = tokenizer.decode(
      firstPrompt(tokenizer, { messages, tools, dialect: dialects[dialect], describeTools: true }),
    );
    expect(prompt).toContain("Looks a key up");
    expect(prompt).not.toContain(dialects[dialect].describeTools(tools));
    // Without tools the same prompt is the messages alone.
    const bare = firstPrompt(tokenizer, { messages, tools, dialect: dialects[dialect], describeTools: false });
    expect(bare).toEqual(tokenizer.render(messages, { generationPrompt: true }));
  },
);
it("calls are written with the family's own marks, and are read back", async () => {
  const calls: NamedCall[] = [
    { name: "get", arguments: { key: "</s> [TOOL_CALLS] <|eot_id|>" } },
    { name: "get", arguments: { key: "b", n: 1 } },
  ];
  const named = calls.map((call, index) => ({ id: `c0000000${index}`, ...call }));
  for (const [folder, name, dialect] of [
    ["mistral-nemo", "mistral-nemo", "mistral"],
    ["qwen3", "qwen3-acc-thinking", "hermes"],
    ["qwen3", "qwen3-coder", "qwen-xml"],
  ] as const) {
    const tokenizer = await own(folder, name);
    const tokens = calledTokens(tokenizer, dialects[dialect], named) ?? [];
    expect(tokenizer.stopTokens).toContain(tokens.at(-1));
    const read = dialects[dialect].parse(sampledText(tokenizer, tokens), tools).calls;
    expect(read.map(({ name: tool, arguments: args }) => ({ name: tool, arguments: args }))).toEqual(
      dialect === "qwen-xml" ? [calls[0], { name: "get", arguments: expect.objectContaining({ key: "b" }) }] : calls,
    );
    // The mark is one token; the same letters in an argument are not.
    const special = tokens.filter((token) => tokenizer.decode([token], { skipSpecial: true }) === "");
    expect(special).toHaveLength(dialect === "mistral" ? 2 : 1);
  }
  expect(calledTokens(await own("qwen3"), dialects.pythonic, named)).toBeNull();
});
it("a template that knows no tools, or writes other calls, leaves them to the dialect", async () => {
  const quickstart = await loadTokenizer(quickstartFolder());
  const qwen3 = await own("qwen3");
  for (const [tokenizer, dialect] of [
    [quickstart, dialects.hermes],
    [qwen3, dialects.pythonic],
  ] as const) {
    expect(describesTools(tokenizer, dialect)).toBe(false);
    const prompt = tokenizer.decode(firstPrompt(tokenizer, { messages, tools, dialect, describeTools: true }));
    expect(prompt).toContain(dialect.describeTools(tools));
  }
});
