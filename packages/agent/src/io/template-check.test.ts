import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conversations, tools } from "../../testing/conversations.ts";
import { quickstartFolder } from "../../testing/scripted-rollout.ts";
import { namedTemplate, tokenizerFolders } from "../../testing/tokenizer-folders.ts";
import { hermes } from "../core/dialects/hermes.ts";
import { pythonic } from "../core/dialects/pythonic.ts";
import { observationTokens } from "../core/render-conversation.ts";
import { loadTokenizer } from "./load-tokenizer.ts";
import { checkTemplate } from "./template-check.ts";

let scratch: string;
let qwen3: Tokenizer;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "rolldeck-templates-"));
  qwen3 = await loadTokenizer(tokenizerFolders.qwen3());
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const kinds = (tokenizer: Tokenizer, dialect = hermes) =>
  checkTemplate(tokenizer, dialect).findings.map(({ kind, level }) => `${level} ${kind}`);
const bpe = (template?: string) =>
  loadTokenizer(tokenizerFolders["byte-bpe"](), template === undefined ? {} : { template });

describe("templates that only add", () => {
  it("the quickstart's has nothing to say", async () => {
    expect(checkTemplate(await loadTokenizer(quickstartFolder()), pythonic)).toEqual({ ok: true, findings: [] });
  });
  it.each([
    ["qwen3", "qwen3-acc-thinking", null],
    ["qwen3", "qwen3-acc-thinking", false],
    ["qwen3", "qwen3-acc-thinking", true],
    ["qwen3", "qwen2.5", null],
    ["qwen3", "qwen3-coder", null],
    ["llama-3.1", "llama-3.1", null],
    ["mistral-nemo", "mistral-nemo", null],
  ] as const)("%s with %s, thinking %s, may train", async (folder, name, thinking) => {
    const tokenizer = await loadTokenizer(tokenizerFolders[folder](), { template: namedTemplate(name), thinking });
    const report = checkTemplate(tokenizer, hermes);
    expect(report.findings.filter(({ level }) => level === "error")).toEqual([]);
    expect(report.ok).toBe(true);
    expect(report.findings.map(({ kind }) => kind)).not.toContain("prefix-break");
  });
  it("the accumulating Qwen3 template writes what Qwen3's own does, but for thinking", async () => {
    const ours = await loadTokenizer(tokenizerFolders.qwen3(), { template: namedTemplate("qwen3-acc-thinking") });
    for (const [name, messages] of Object.entries(conversations)) {
      const last = messages.at(-1)?.role === "assistant";
      const thinks = messages.some(({ content, reasoning }) => reasoning !== undefined || content.includes("</think>"));
      if (last || thinks) continue;
      for (const options of [{ generationPrompt: true }, { generationPrompt: true, tools }])
        expect([name, ours.render(messages, options)]).toEqual([name, qwen3.render(messages, options)]);
    }
  });
  it("the accumulating Qwen3 template keeps thinking", async () => {
    const template = namedTemplate("qwen3-acc-thinking");
    expect(kinds(await loadTokenizer(tokenizerFolders.qwen3(), { template }))).not.toContain("warning strips-thinking");
  });
});

describe("what is found", () => {
  it("Qwen3's own template takes thinking out", () => {
    const report = checkTemplate(qwen3, hermes);
    expect(report.ok).toBe(true);
    expect(report.findings.find(({ kind }) => kind === "strips-thinking")?.message).toContain("quiet thought");
  });
  it("Qwen3's own template without thinking begins answers otherwise later", async () => {
    const tokenizer = await loadTokenizer(tokenizerFolders.qwen3(), { thinking: false });
    expect(kinds(tokenizer)).toContain("error prefix-break");
  });
  it("Mistral's own template moves the system message", async () => {
    const tokenizer = await loadTokenizer(tokenizerFolders["mistral-nemo"]());
    const report = checkTemplate(tokenizer, hermes);
    expect(report.ok).toBe(false);
    expect(report.findings.find(({ kind }) => kind === "prefix-break")?.message).toContain("system message");
  });
  it("a turn number that the template counts", async () => {
    const counting =
      "{%- for m in messages -%}{{- '<|start|>' ~ m.role ~ loop.index ~ '\n' ~ m.content ~ '<|end|>' -}}{%- endfor -%}" +
      "{%- if add_generation_prompt -%}{{- '<|start|>assistant' ~ (messages | length + 1) ~ '\n' -}}{%- endif -%}";
    expect(kinds(await bpe(counting))).toContain("error prefix-break");
  });
  it("no generation prompt", async () => {
    const none = "{%- for m in messages -%}{{- '<|start|>' ~ m.role ~ '\n' ~ m.content ~ '<|end|>' -}}{%- endfor -%}";
    expect(kinds(await bpe(none))).toEqual(["error generation-prompt"]);
  });
  it("an end mark at which nothing stops", async () => {
    const folder = join(scratch, "no-stop");
    await cp(tokenizerFolders["byte-bpe"](), folder, { recursive: true });
    await writeFile(join(folder, "tokenizer_config.json"), JSON.stringify({ eos_token: "<|pad|>" }));
    expect(kinds(await loadTokenizer(folder))).toEqual(["error end-token"]);
  });
  it("no end mark at all", async () => {
    const open =
      "{%- for m in messages -%}{{- '<|start|>' ~ m.role ~ '\n' ~ m.content -}}{%- endfor -%}" +
      "{%- if add_generation_prompt -%}{{- '<|start|>assistant\n' -}}{%- endif -%}";
    expect(kinds(await bpe(open))).toEqual(["error end-token"]);
  });
  it("a template that knows no results", async () => {
    const strict =
      "{%- for m in messages -%}{%- if m.role == 'tool' -%}{{- raise_exception('no tools') -}}{%- endif -%}{{- '<|start|>' ~ m.role ~ '\n' ~ m.content ~ '<|end|>' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|start|>assistant\n' -}}{%- endif -%}";
    const report = checkTemplate(await bpe(strict), hermes);
    expect(report.ok).toBe(false);
    expect(report.findings.find(({ kind }) => kind === "refused")?.message).toContain("no tools");
  });
  it("nothing in a template that takes results only after its own calls, and shows no words beside them", async () => {
    const strict =
      "{%- for m in messages -%}{%- if m.role == 'tool' and not loop.previtem.tool_calls and loop.previtem.role != 'tool' -%}" +
      "{{- raise_exception('no call') -}}{%- endif -%}{{- '<|start|>' ~ m.role ~ '\n' -}}{%- if m.tool_calls -%}" +
      "{%- for call in m.tool_calls -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}{%- else -%}{{- m.content -}}{%- endif -%}" +
      "{{- '<|end|>' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|start|>assistant\n' -}}{%- endif -%}";
    const tokenizer = await bpe(strict);
    const result = { role: "tool" as const, content: "found", toolCallId: "c00000000" };
    expect(tokenizer.decode(observationTokens(tokenizer, [result, result]))).toBe(
      "<|start|>tool\nfound<|end|><|start|>tool\nfound<|end|><|start|>assistant\n",
    );
  });
  it("a switch for thinking that the template does not have", async () => {
    const kindsWith = (tokenizer: Tokenizer, thinking: boolean | null) =>
      checkTemplate(tokenizer, hermes, thinking).findings.map(({ kind, level }) => `${level} ${kind}`);
    const llama = await loadTokenizer(tokenizerFolders["llama-3.1"](), {
      template: namedTemplate("llama-3.1"),
      thinking: true,
    });
    expect(kindsWith(llama, true)).toEqual(["error thinking-switch"]);
    expect(kindsWith(llama, null)).toEqual([]);
    expect(kindsWith(qwen3, true)).not.toContain("error thinking-switch");
  });
  it("text that a normaliser changes", async () => {
    expect(kinds(await bpe())).toEqual(["warning drift"]);
  });
});
