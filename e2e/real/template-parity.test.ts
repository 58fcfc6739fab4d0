/** Every tokenizer and chat template that tests know gives the token ids that Python's `transformers` gives. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { conversations, texts, tools } from "@rolldeck/agent/testing/conversations";
import { namedTemplate, tokenizerFolders } from "@rolldeck/agent/testing/tokenizer-folders";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

type Folder = keyof typeof tokenizerFolders;
/** A tokenizer with its own template, or with a named one of this repository. */
const subjects: readonly { folder: Folder; template: string | null; thinking: boolean | null }[] = [
  { folder: "qwen3", template: null, thinking: null },
  { folder: "qwen3", template: null, thinking: false },
  { folder: "qwen3", template: "qwen3-acc-thinking", thinking: null },
  { folder: "qwen3", template: "qwen3-acc-thinking", thinking: false },
  { folder: "qwen3", template: "qwen2.5", thinking: null },
  { folder: "qwen3", template: "qwen3-coder", thinking: null },
  { folder: "llama-3.1", template: null, thinking: null },
  { folder: "llama-3.1", template: "llama-3.1", thinking: null },
  { folder: "mistral-nemo", template: null, thinking: null },
  { folder: "mistral-nemo", template: "mistral-nemo", thinking: null },
  { folder: "byte-bpe", template: null, thinking: null },
  { folder: "unigram", template: null, thinking: null },
  { folder: "byte-bpe", template: "everything", thinking: null },
];
const textOf = (template: string): string => (template === "everything" ? everything : namedTemplate(template));
/** What templates do with values, one expression a line, over every message of every conversation. */
const expressions = [
  "m.content | trim",
  "m.content.strip() ~ '|' ~ m.content.lstrip() ~ '|' ~ m.content.rstrip()",
  "m.content.strip('\\n ') ~ '|' ~ m.content.lstrip('\\nab') ~ '|' ~ m.content.rstrip('.?\\n')",
  "m.content | length",
  "m.content.split('</think>')[-1]",
  "m.content.split() | join('-')",
  "m.content.split(none, 1) | join('-')",
  "m.content.split(' ', 1) | join('-')",
  "m.content.split(maxsplit=2) | join('-')",
  "m.content.startswith('<think>') ~ m.content.endswith('?')",
  "m.content.replace('a', 'bb') | upper",
  "m.content[:3] ~ m.content[-2:]",
  "m",
  "m | string",
  "m | tojson",
  "m | tojson(indent=2)",
  "m | tojson(ensure_ascii=true, sort_keys=true)",
  "m | tojson(separators=(',', ':'))",
  "m.tool_calls[0].function.arguments if m.tool_calls else 'none'",
  "(m == messages[0]) ~ (m.content == messages[-1].content) ~ (m.role != 'user')",
  "true ~ 1 ~ 2.5 ~ [1, 'a', none] ~ {'k': true}",
  "m.reasoning_content is defined and m.reasoning_content",
  "loop.index0 ~ loop.first ~ loop.last ~ loop.revindex",
  "(messages | selectattr('role', 'equalto', 'user') | list | length)",
  "(messages | selectattr('tool_calls', 'undefined') | list | length) ~ (messages | rejectattr('name') | list | length)",
  "(messages | map(attribute='role') | join(','))",
  "'%s' | trim",
];
const everything = `{% for m in messages %}${expressions.map((each) => `{{ ${each} }}\n`).join("")}{% endfor %}`;
const nameOf = ({ folder, template, thinking }: (typeof subjects)[number]) =>
  `${folder} with ${template ?? "its own template"}${thinking === null ? "" : `, thinking ${thinking}`}`;

/** Strings that no one thought of; the seed is fixed so that a difference can be looked at. */
const strange = fc.sample(
  fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.string({ maxLength: 60 }),
  ),
  { numRuns: 150, seed: 11 },
);
/** What Python takes for a lone surrogate it can't encode; special tokens in content are ours to write as text. */
const isSound = (written: string) => !/\p{Surrogate}/u.test(written);
const allTexts = [...texts, ...strange].filter(isSound);

/** Conversations that no one thought of: any order of answers, calls, results and hints that follows a question. */
const content = fc.oneof(fc.constantFrom(...texts), fc.string({ unit: "grapheme", maxLength: 20 }).filter(isSound));
const callId = (at: number) => `c${String(at).padStart(8, "0")}`;
const exchange = fc.record({
  answer: content,
  reasoning: fc.option(content, { nil: undefined }),
  calls: fc.array(
    fc.dictionary(fc.constantFrom("key", "count", "é", "deep"), fc.jsonValue({ maxDepth: 2 }), {
      noNullPrototype: true,
    }),
    { maxLength: 2 },
  ),
  results: fc.array(content, { minLength: 2, maxLength: 2 }),
  next: fc.option(content, { nil: undefined }),
});
const strangeConversations = fc
  .sample(
    fc.record({
      system: fc.option(content),
      question: content,
      exchanges: fc.array(exchange, { minLength: 1, maxLength: 4 }),
    }),
    {
      numRuns: 40,
      seed: 12,
    },
  )
  .map(({ system, question, exchanges }): ChatMessage[] => [
    ...(system === null ? [] : [{ role: "system" as const, content: system }]),
    { role: "user", content: question },
    ...exchanges.flatMap(({ answer, reasoning, calls, results, next }): ChatMessage[] => [
      {
        role: "assistant",
        content: answer,
        reasoning,
        toolCalls: calls.map((call, at) => ({
          id: callId(at),
          name: "get",
          arguments: JsonObject.parse(JSON.parse(JSON.stringify(call))),
        })),
      },
      ...calls.map((_, at) => ({
        role: "tool" as const,
        content: results[at] ?? "",
        toolCallId: callId(at),
        name: "get",
      })),
      ...(next === undefined ? [] : [{ role: "user" as const, content: next }]),
    ]),
  ]);
const allConversations: [string, readonly ChatMessage[]][] = [
  ...Object.entries(conversations),
  ...strangeConversations.map((messages, at): [string, ChatMessage[]] => [`strange${at}`, messages]),
];

const Answer = z.object({
  cases: z.array(z.array(z.int()).nullable()),
  texts: z.record(z.string(), z.array(z.array(z.int()))),
});
const tokenizers = new Map<(typeof subjects)[number], Tokenizer>();
let answer: z.infer<typeof Answer>;

/** What Python calls printable depends on its version of Unicode. */
const isOld = (messages: readonly ChatMessage[]) => !/[^\0-\u02ff]/.test(JSON.stringify(messages));
const conversationsOf = ({ template }: (typeof subjects)[number]) =>
  allConversations.filter(([name, messages]) => template !== "everything" || name in conversations || isOld(messages));
const situations = subjects.flatMap((subject) =>
  conversationsOf(subject).flatMap(([name, messages]) =>
    [false, true].flatMap((withTools) =>
      [false, true].map((generationPrompt) => ({ subject, name, messages, withTools, generationPrompt })),
    ),
  ),
);

/** OpenAI's shape, which `apply_chat_template` takes. */
const openAiMessage = ({ role, content, reasoning, toolCalls, toolCallId, name }: ChatMessage) => ({
  role,
  content,
  // Fault 11: what is empty is left out.
  reasoning_content: reasoning === "" ? undefined : reasoning,
  tool_calls:
    toolCalls?.length === 0
      ? undefined
      : toolCalls?.map((call) => ({
          id: call.id,
          type: "function",
          function: { name: call.name, arguments: call.arguments },
        })),
  tool_call_id: toolCallId,
  name,
});
const openAiTool = ({ name, description, parameters }: ToolSpec) => ({
  type: "function",
  function: { name, description, parameters },
});

async function askPython(): Promise<z.infer<typeof Answer>> {
  const python = process.env.ROLLDECK_PYTHON;
  if (!python) throw new Error("set ROLLDECK_PYTHON to an interpreter with transformers; npm test does so by itself");
  const child = spawn(python, [path.join(import.meta.dirname, "hf_render.py")], {
    env: { ...process.env, HF_HUB_OFFLINE: "1", TRANSFORMERS_VERBOSITY: "error", PYTHONIOENCODING: "utf-8" },
    stdio: "pipe",
  });
  const exit = once(child, "close");
  child.stdin.end(
    JSON.stringify({
      cases: situations.map(({ subject, messages, withTools, generationPrompt }) => ({
        folder: tokenizerFolders[subject.folder](),
        template: subject.template === null ? templateOf(subject.folder) : textOf(subject.template),
        messages: messages.map(openAiMessage),
        tools: withTools ? tools.map(openAiTool) : null,
        variables: {
          add_generation_prompt: generationPrompt,
          ...(subject.thinking === null ? {} : { enable_thinking: subject.thinking }),
        },
      })),
      texts: Object.fromEntries(Object.values(tokenizerFolders).map((folder) => [folder(), allTexts])),
    }),
  );
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await exit;
  if (code !== 0) throw new Error(`transformers failed: ${errors.slice(-2_000)}`);
  return Answer.parse(JSON.parse(out));
}

const Config = z.looseObject({ chat_template: z.string().optional() });
function templateOf(name: Folder): string {
  const folder = tokenizerFolders[name]();
  const file = path.join(folder, "chat_template.jinja");
  if (existsSync(file)) return readFileSync(file, "utf8");
  return Config.parse(JSON.parse(readFileSync(path.join(folder, "tokenizer_config.json"), "utf8"))).chat_template ?? "";
}

beforeAll(async () => {
  const asked = askPython();
  for (const subject of subjects) {
    const { folder, template, thinking } = subject;
    const options = { thinking, ...(template === null ? {} : { template: textOf(template) }) };
    tokenizers.set(subject, await loadTokenizer(tokenizerFolders[folder](), options));
  }
  answer = await asked;
});

describe("chat templates in Node and in Python", () => {
  it.each(subjects.map((subject) => [nameOf(subject), subject] as const))("%s", (_name, subject) => {
    const tokenizer = tokenizers.get(subject);
    const theirs = answer.cases.filter((_, at) => situations[at]?.subject === subject);
    const ours = situations
      .filter((situation) => situation.subject === subject)
      .map(({ messages, withTools, generationPrompt }) => {
        try {
          return tokenizer?.render(messages, { generationPrompt, ...(withTools ? { tools } : {}) }) ?? null;
        } catch {
          return null;
        }
      });
    const names = situations.filter((situation) => situation.subject === subject).map(({ name }) => name);
    const different = names.filter((_, at) => JSON.stringify(ours[at]) !== JSON.stringify(theirs[at]));
    expect(different).toEqual([]);
    // A template that refuses everything would agree with itself.
    expect(ours.filter((tokens) => tokens !== null).length).toBeGreaterThan(ours.length / 2);
  });
});

describe("texts in Node and in Python", () => {
  it.each(Object.keys(tokenizerFolders) as Folder[])("%s", (folder) => {
    const tokenizer = [...tokenizers].find(([subject]) => subject.folder === folder)?.[1];
    const theirs = answer.texts[tokenizerFolders[folder]()] ?? [];
    const different = allTexts.filter(
      (content, at) => JSON.stringify(tokenizer?.encode(content)) !== JSON.stringify(theirs[at]),
    );
    expect(different).toEqual([]);
  });
});
