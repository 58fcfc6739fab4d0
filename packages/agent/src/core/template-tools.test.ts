import { expect, it } from "vitest";
import { quickstartFolder } from "../../testing/scripted-rollout.ts";
import { namedTemplate, tokenizerFolders } from "../../testing/tokenizer-folders.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { dialects } from "./registry.ts";
import { firstPrompt } from "./render-conversation.ts";
import { describesTools } from "./template-tools.ts";

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
