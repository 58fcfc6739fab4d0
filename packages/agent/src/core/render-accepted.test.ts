import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import { describe, expect, it } from "vitest";
import { tokenizerFolders } from "../../testing/tokenizer-folders.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { checkTemplate } from "../io/template-check.ts";
import { skyrl } from "./dialects/skyrl.ts";
import { renderAccepted } from "./render-accepted.ts";
import { firstPrompt, observationTokens } from "./render-conversation.ts";

const message = (role: ChatMessage["role"], content: string): ChatMessage => ({ role, content });
const refuse = (what: string) => {
  throw new Error(what);
};

describe("renderAccepted", () => {
  it("gives a template what it takes, the messages as they are first", () => {
    const seen: string[] = [];
    const strict = (messages: readonly ChatMessage[]) => {
      seen.push(messages.map(({ role, content }) => `${role}:${content}`).join("|"));
      if (messages.some(({ role }) => role === "system")) refuse("no system");
      if (messages.some(({ role }, at) => role === messages[at - 1]?.role)) refuse("in turn");
      return [messages.length];
    };
    expect(renderAccepted([message("user", "a")], strict)).toEqual([1]);
    const messages = [message("system", "s"), message("user", "a"), message("user", "b"), message("assistant", "c")];
    expect(renderAccepted(messages, strict)).toEqual([2]);
    expect(seen).toEqual([
      "user:a",
      "system:s|user:a|user:b|assistant:c",
      "system:s|user:a\n\nb|assistant:c",
      "user:s\n\na\n\nb|assistant:c",
    ]);
  });
  it("says what is wrong with the messages as they came", () => {
    const never = (messages: readonly ChatMessage[]) => refuse(`refused ${messages.length}`);
    expect(() => renderAccepted([message("user", "a"), message("user", "b")], never)).toThrow("refused 2");
    expect(() => renderAccepted([message("tool", "a")], never)).toThrow("refused 1");
  });
});

describe("a template of users and assistants in turn, without system messages or results", () => {
  const strict =
    "{%- for m in messages -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('in turn') -}}{%- endif -%}" +
    "{%- if m.role not in ['user', 'assistant'] -%}{{- raise_exception('no ' ~ m.role) -}}{%- endif -%}" +
    "{{- '<|start|>' ~ m.role ~ '\n' ~ m.content ~ '<|end|>\n' -}}{%- endfor -%}" +
    "{%- if add_generation_prompt -%}{{- '<|start|>assistant\n' -}}{%- endif -%}";
  const tools = [{ name: "get", description: "Looks a key up", parameters: { type: "object", properties: {} } }];

  it("carries a whole rollout in a dialect whose results are the user's words", async () => {
    const tokenizer = await loadTokenizer(tokenizerFolders["byte-bpe"](), { template: strict });
    const messages = [message("system", "be brief"), message("user", "find a")];
    const first = tokenizer.decode(firstPrompt(tokenizer, { messages, tools, dialect: skyrl, describeTools: true }));
    expect(first.startsWith("<|start|>user\nbe brief\n\n")).toBe(true);
    expect(first.endsWith("\n\nfind a<|end|>\n<|start|>assistant\n")).toBe(true);
    expect(tokenizer.decode(observationTokens(tokenizer, [message("user", "1"), message("user", "2")]))).toBe(
      "\n<|start|>user\n1\n\n2<|end|>\n<|start|>assistant\n",
    );
    expect(checkTemplate(tokenizer, skyrl).findings.filter(({ level }) => level === "error")).toEqual([]);
  });
});
