/** Tokens stay what they were: sampled ones through whole rollouts, text through encode and decode, turn marks against content. */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conversations, texts, tools } from "../../testing/conversations.ts";
import { rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { namedTemplate, tokenizerFolders } from "../../testing/tokenizer-folders.ts";
import { hermes } from "../core/dialects/hermes.ts";
import { observationTokens, sampledText } from "../core/render-conversation.ts";
import { runRollout } from "../core/run-rollout.ts";
import { loadTokenizer } from "./load-tokenizer.ts";

type Name = keyof typeof tokenizerFolders;
const names = Object.keys(tokenizerFolders) as Name[];
/** Templates that only add, one a tokenizer. */
const templates: Partial<Record<Name, string>> = {
  qwen3: "qwen3-acc-thinking",
  "llama-3.1": "llama-3.1",
  "mistral-nemo": "mistral-nemo",
};
const loaded = new Map<Name, Tokenizer>();
const tokenizerOf = (name: Name): Tokenizer => {
  const tokenizer = loaded.get(name);
  if (tokenizer === undefined) throw new Error(`${name} is not loaded`);
  return tokenizer;
};
let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "rolldeck-fidelity-"));
  for (const name of names) {
    const template = templates[name];
    const options = template === undefined ? {} : { template: namedTemplate(template) };
    loaded.set(name, await loadTokenizer(tokenizerFolders[name](), options));
  }
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const anyText = fc.oneof(
  fc.constantFrom(...texts),
  fc.string({ unit: "grapheme", maxLength: 30 }),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const isSound = (text: string) => !/\p{Surrogate}/u.test(text);

/** A text as a policy may sample it and no encoder would: every character on its own. */
const spelled = (tokenizer: Tokenizer, text: string) => [...text].flatMap((letter) => tokenizer.encode(letter));

describe("a rollout", () => {
  it.each(names)("of %s keeps every sampled id, and adds what the template puts after it", async (name) => {
    const tokenizer = tokenizerOf(name);
    const call = hermes.renderCalls([{ name: "get", arguments: { key: "a" } }]);
    // The same call with two blanks after a colon, letter by letter.
    const said = ['{"name":  "get", "arguments": {"key":  "a"}}', '{"name": "finish", "arguments": {"answer":  "b"}}'];
    const [end = 0] = tokenizer.stopTokens;
    const sampled = said.map((json) => [
      ...spelled(tokenizer, call.slice(0, call.indexOf("{"))),
      ...spelled(tokenizer, json),
      ...tokenizer.encode("\n</tool_call>"),
      end,
    ]);
    const rollout = scriptedRollout({
      tokenizer,
      policy: sampled.map((tokens) => () => ({
        tokens,
        logprobs: tokens.map(() => -0.5),
        stopReason: "stop",
        policyVersion: 1,
        cacheHitTokens: 0,
      })),
    });
    const spec = rolloutSpec(tokenizer, { maxContextTokens: 8192 }, { dialect: hermes });
    const done = await runRollout(spec, null, rollout, new AbortController().signal);
    expect(done).toMatchObject({ ending: "finish_tool", finalAnswer: "b" });
    const { segments } = rollout.stored();
    expect(segments.filter(({ origin }) => origin === "sampled").map(({ tokens }) => tokens)).toEqual(sampled);
    const [first = [], second = []] = rollout.requests.map(({ prompt }) => prompt.toArray());
    const answer = segments[2]?.tokens ?? [];
    expect(second).toEqual([...first, ...(sampled[0] ?? []), ...answer]);
    // What came between is the template's own: the same as in a whole conversation, glue included (fault 15).
    const whole = tokenizer.render(
      [
        ...spec.messages,
        { role: "assistant", content: "x" },
        { role: "tool", content: "next after a", toolCallId: "c00000000", name: "get" },
      ],
      { generationPrompt: true },
    );
    const observed = tokenizer.decode(answer).replace(/"c\d{8}"/, '"c00000000"');
    expect(tokenizer.decode(whole).endsWith(observed)).toBe(true);
    expect(observed).toContain("next after a");
  });

  it("of a vocabulary with he, llo and hello keeps the two that were sampled (fault 14)", async () => {
    const folder = join(scratch, "hello");
    await cp(tokenizerFolders["byte-bpe"](), folder, { recursive: true });
    const file = JSON.parse(await readFile(join(folder, "tokenizer.json"), "utf8"));
    const vocab = { h: 0, e: 1, l: 2, o: 3, he: 4, ll: 5, llo: 6, hello: 7, "!": 8 };
    const merges = [
      ["h", "e"],
      ["l", "l"],
      ["ll", "o"],
      ["he", "llo"],
    ];
    const marks = file.added_tokens.map((token: object, at: number) => ({ ...token, id: 9 + at }));
    const toy = { ...file, normalizer: null, added_tokens: marks, model: { ...file.model, vocab, merges } };
    await writeFile(join(folder, "tokenizer.json"), JSON.stringify(toy));
    const tokenizer = await loadTokenizer(folder, {
      template: "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}",
    });
    expect(tokenizer.encode("hello")).toEqual([7]);
    expect(sampledText(tokenizer, [4, 6, ...tokenizer.stopTokens])).toBe("hello");
    const rollout = scriptedRollout({
      tokenizer,
      policy: [
        () => ({
          tokens: [4, 6, ...tokenizer.stopTokens],
          logprobs: [-1, -1, -1],
          stopReason: "stop",
          policyVersion: 1,
          cacheHitTokens: 0,
        }),
      ],
    });
    const messages: ChatMessage[] = [{ role: "user", content: "hello!" }];
    const spec = rolloutSpec(tokenizer, {}, { messages, tools: [] });
    const done = await runRollout(spec, null, rollout, new AbortController().signal);
    expect(done.finalAnswer).toBe("hello");
    expect(rollout.stored().segments.map(({ tokens }) => tokens)).toEqual([
      [7, 8, ...tokenizer.stopTokens],
      [4, 6, ...tokenizer.stopTokens],
    ]);
  });
});

describe("observations", () => {
  it.each(names)("of %s cost the same whatever the conversation, and hints only add to results", (name) => {
    const tokenizer = tokenizerOf(name);
    let rendered = 0;
    const counting: Tokenizer = {
      ...pick(tokenizer),
      render: (messages, options) => {
        rendered = Math.max(rendered, messages.length);
        return tokenizer.render(messages, options);
      },
    };
    const result = { role: "tool" as const, content: "found", toolCallId: "c00000000", name: "get" };
    const hint = { role: "user" as const, content: "two turns left" };
    const results = observationTokens(counting, [result], false);
    const both = observationTokens(counting, [result, hint]);
    expect(both.slice(0, results.length)).toEqual(results);
    expect(tokenizer.decode(both.slice(results.length))).toContain("two turns left");
    // The short conversation before, and what is shown.
    expect(rendered).toBeLessThanOrEqual(4);
  });
});

const pick = (tokenizer: Tokenizer): Tokenizer => ({
  vocabSize: tokenizer.vocabSize,
  stopTokens: tokenizer.stopTokens,
  encode: (text) => tokenizer.encode(text),
  decode: (tokens, options) => tokenizer.decode(tokens, options),
  tokenTexts: (tokens) => tokenizer.tokenTexts(tokens),
  render: (messages, options) => tokenizer.render(messages, options),
});

describe("content", () => {
  const marks: Readonly<Record<Name, readonly string[]>> = {
    qwen3: ["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
    "llama-3.1": ["<|eot_id|>", "<|start_header_id|>", "<|begin_of_text|>"],
    "mistral-nemo": ["[INST]", "[/INST]", "</s>", "<s>", "[TOOL_CALLS]"],
    "byte-bpe": ["<|start|>", "<|end|>"],
    unigram: ["<s>", "</s>", "[USER]", "[AGENT]", "[RESULT]"],
  };
  it.each(names)("of %s can't write a turn mark, wherever it stands", (name) => {
    const tokenizer = tokenizerOf(name);
    const special = new Set(marks[name].flatMap((mark) => markId(tokenizer, mark)));
    expect(special.size).toBe(marks[name].length);
    const specialsIn = (messages: readonly ChatMessage[]) =>
      tokenizer
        .render(messages, { generationPrompt: true, tools })
        .filter((token) => special.has(token))
        .join();
    const content = fc
      .array(fc.oneof(fc.constantFrom(...marks[name], "\ud800", "<|", "𐀀"), fc.string({ maxLength: 5 })), {
        maxLength: 6,
      })
      .map((parts) => parts.join(""));
    const conversation = (text: string): ChatMessage[] => [
      { role: "user", content: `a${text}b` },
      {
        role: "assistant",
        content: `a${text}b`,
        reasoning: `a${text}b`,
        toolCalls: [{ id: "c00000000", name: "get", arguments: { key: `a${text}b`, [`a${text}b`]: [text] } }],
      },
      { role: "tool", content: `a${text}b`, toolCallId: "c00000000", name: "get" },
    ];
    const plain = specialsIn(conversation("x"));
    fc.assert(
      fc.property(content, (text) => {
        expect(specialsIn(conversation(text))).toBe(plain);
      }),
      { numRuns: 60 },
    );
  });

  it.each(names)("of %s that is empty leaves no word behind (fault 11)", (name) => {
    const tokenizer = tokenizerOf(name);
    for (const [kind, messages] of Object.entries(conversations)) {
      if (kind === "arguments" || kind.startsWith("text")) continue;
      const text = tokenizer.decode(tokenizer.render(messages, { generationPrompt: true }));
      expect(text).not.toMatch(/None|null|undefined/);
    }
    // An empty list of calls is no list: the answer is shown.
    const hi: ChatMessage = { role: "assistant", content: "hi" };
    const user: ChatMessage = { role: "user", content: "x" };
    const render = (answer: ChatMessage) => tokenizer.render([user, answer, user], { generationPrompt: true });
    expect(render({ ...hi, toolCalls: [] })).toEqual(render(hi));
  });
});

/** The id of a special token: templates write it, encode does not. */
function markId(tokenizer: Tokenizer, mark: string): number[] {
  for (let id = 0; id < tokenizer.vocabSize; id++)
    if (tokenizer.decode([id]) === mark && tokenizer.decode([id], { skipSpecial: true }) === "") return [id];
  return [];
}

describe("text", () => {
  it.each(["qwen3", "llama-3.1", "mistral-nemo", "byte-bpe"] as const)(
    "of the byte-level %s comes back as it was, normalised where the tokenizer does, and its bytes add up",
    (name) => {
      const tokenizer = tokenizerOf(name);
      const normalised = name === "qwen3" || name === "byte-bpe";
      fc.assert(
        fc.property(anyText.filter(isSound), (text) => {
          const tokens = tokenizer.encode(text);
          const expected = normalised ? text.normalize("NFC") : text;
          expect(tokenizer.decode(tokens)).toBe(expected);
          const bytes = tokenizer.tokenTexts(tokens).flatMap(bytesOf);
          expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes))).toBe(expected);
        }),
        { numRuns: 150 },
      );
    },
  );
  it("of a unigram keeps its spaces in the middle of a prompt, and falls back to bytes", () => {
    const tokenizer = tokenizerOf("unigram");
    const whole = fc.array(fc.constantFrom("he", "llo", " ", "  ", "鍵", "😀", "\n", "\t", "ж", "."), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(whole, (parts) => {
        const text = parts.join("");
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
        expect(tokenizer.tokenTexts(tokenizer.encode(text)).flatMap(bytesOf)).toEqual([
          ...new TextEncoder().encode(text),
        ]);
      }),
    );
    expect(tokenizer.encode("鍵")).toHaveLength(3);
    expect(tokenizer.encode(" the")).not.toEqual(tokenizer.encode("the"));
  });
  it.each(names)("of %s is never lost where a list of tokens is cut: decode never fails", (name) => {
    const tokenizer = tokenizerOf(name);
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: tokenizer.vocabSize + 5 }), { maxLength: 20 }),
        fc.nat({ max: 20 }),
        (tokens, at) => {
          const shown = tokenizer.tokenTexts(tokens);
          expect(shown).toHaveLength(tokens.length);
          expect(shown).toEqual([
            ...tokenizer.tokenTexts(tokens.slice(0, at)),
            ...tokenizer.tokenTexts(tokens.slice(at)),
          ]);
          const parts = tokenizer.decode(tokens.slice(0, at)) + tokenizer.decode(tokens.slice(at));
          // Where no character is cut in two the parts are the whole.
          if (!parts.includes("\ufffd")) expect(parts).toBe(tokenizer.decode(tokens));
        },
      ),
      { numRuns: 100 },
    );
  });
});

/** Bytes that a token view shows. */
const bytesOf = (shown: string): number[] => {
  const bytes: number[] = [];
  for (const part of shown.split(/(<0x[0-9A-F]{2}>)/)) {
    const hex = /^<0x([0-9A-F]{2})>$/.exec(part)?.[1];
    if (hex === undefined) bytes.push(...new TextEncoder().encode(part));
    else bytes.push(Number.parseInt(hex, 16));
  }
  return bytes;
};
