/** Fault 4 as a class: ill-formed arguments end as "run exactly as meant", said, or as an error; never as other arguments. */
import type { NamedCall } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyJson } from "../../../testing/any-turn.ts";
import { hermes } from "./hermes.ts";
import type { Json } from "./literal-reader.ts";
import { llamaJson } from "./llama-json.ts";
import { mistral } from "./mistral.ts";
import { openai } from "./openai.ts";
import { openAiTurnText } from "./openai-turn.ts";
import { readWholeJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";

/** How each format wraps the text of the arguments. */
const formats = [
  { dialect: hermes, wrap: (args: string) => `<tool_call>\n{"name": "get", "arguments": ${args}}\n</tool_call>` },
  { dialect: llamaJson, wrap: (args: string) => `{"name": "get", "parameters": ${args}}` },
  { dialect: mistral, wrap: (args: string) => `[TOOL_CALLS]get[ARGS]${args}` },
  { dialect: mistral, wrap: (args: string) => `[TOOL_CALLS][{"name": "get", "arguments": ${args}}]` },
  {
    dialect: openai,
    wrap: (args: string) =>
      openAiTurnText({ reasoning: "", content: "", toolCalls: [{ id: "c", name: "get", arguments: args }] }),
  },
];
const tools = [{ name: "get", description: "", parameters: {} }];

/** The near misses that are mended, written on purpose. */
interface Damage {
  readonly commas: boolean;
  readonly single: boolean;
  readonly python: boolean;
  readonly raw: boolean;
  readonly fence: boolean;
}
function damaged(value: Json, damage: Damage): string {
  const comma = damage.commas ? "," : "";
  if (typeof value === "string") return damagedString(value, damage);
  if (damage.python && (value === null || typeof value === "boolean")) return renderLiteral(value, "python");
  if (Array.isArray(value))
    return `[${value.map((item) => damaged(item, damage)).join(", ")}${value.length > 0 ? comma : ""}]`;
  if (typeof value !== "object" || value === null) return renderLiteral(value, "json");
  const entries = Object.entries(value).map(([key, item]) => `${damagedString(key, damage)}: ${damaged(item, damage)}`);
  return `{${entries.join(", ")}${entries.length > 0 ? comma : ""}}`;
}
function damagedString(value: string, { single, raw }: Damage): string {
  let text = JSON.stringify(value).slice(1, -1);
  if (raw) text = text.replace(/\\(\\|n|t)/g, (whole, kind) => (kind === "\\" ? whole : kind === "n" ? "\n" : "\t"));
  return single ? `'${text.replaceAll('\\"', '"').replaceAll("'", "\\'")}'` : `"${text}"`;
}

const args = fc.dictionary(fc.string(), anyJson, { maxKeys: 4 });
const flag = fc.boolean();
const damage = fc.record({ commas: flag, single: flag, python: flag, raw: flag, fence: flag });
/** Marks of the formats inside raw strings end what a repair may look at. */
const marks = /<\/?tool_call>|\[TOOL_CALLS\]|<\/?think>|\[\/?THINK\]|\n[ \t]*\{\s*["']/;
/** In a fence the arguments begin a line: with such a key first they are a call of llama-json themselves. */
const callKey = /^\{\s*["'](?:name|type|parameters|arguments)["']/;

describe("near misses", () => {
  it.each(formats)("are read as meant by $dialect.name, and said", ({ dialect, wrap }) => {
    fc.assert(
      fc.property(args, damage, (meant, how) => {
        const text = damaged(meant, how);
        fc.pre(!marks.test(text) && !(how.fence && callKey.test(text)));
        const { calls, error, repairs } = dialect.parse(wrap(how.fence ? `\`\`\`json\n${text}\n\`\`\`` : text), tools);
        expect(error).toBeNull();
        expect(calls.map((call) => call.arguments)).toEqual([meant]);
        const isJson = !how.fence && parsesTo(text, meant);
        expect(repairs).toHaveLength(isJson ? 0 : 1);
      }),
      { numRuns: 300 },
    );
  });
});

function parsesTo(text: string, meant: JsonObject): boolean {
  try {
    expect(JSON.parse(text)).toEqual(meant);
    return true;
  } catch {
    return false;
  }
}

describe("any change to the text", () => {
  const changes = fc.array(
    fc.record({
      at: fc.nat(),
      remove: fc.nat({ max: 3 }),
      insert: fc.constantFrom(
        "",
        "",
        '"',
        "'",
        "\\",
        ",",
        "}",
        "{",
        "]",
        "[",
        ":",
        "\n",
        " ",
        "x",
        "True",
        "```",
        "\\n",
        "/*",
      ),
    }),
    { minLength: 1, maxLength: 3 },
  );
  const changed = (text: string, list: readonly { at: number; remove: number; insert: string }[]): string =>
    list.reduce((now, { at, remove, insert }) => {
      const from = at % (now.length + 1);
      return now.slice(0, from) + insert + now.slice(from + remove);
    }, text);

  it("runs what a strict JSON parser reads, or says what was mended, or is an error", () => {
    fc.assert(
      fc.property(args, changes, (meant, list) => {
        const text = changed(renderLiteral(meant, "json"), list);
        const { calls, error, repairs } = openai.parse(formats.at(-1)?.wrap(text) ?? "", tools);
        expect(calls.length === 1).toBe(error === null);
        if (calls.length === 0 || text === "") return;
        if (repairs.length === 0) expect(calls[0]?.arguments).toEqual(JSON.parse(text));
        else expect(() => JSON.parse(text)).toThrow();
      }),
      { numRuns: 3000 },
    );
  });
  it("never makes two readings of one text", () => {
    fc.assert(
      fc.property(args, changes, (meant, list) => {
        const text = changed(renderLiteral(meant, "json"), list);
        fc.pre(!marks.test(text) && !text.includes("{}"));
        const readings = formats.slice(2, 4).map(({ dialect, wrap }): readonly NamedCall[] => {
          const { calls, error } = dialect.parse(wrap(text), tools);
          return error === null ? calls.map(({ name, arguments: read }) => ({ name, arguments: read })) : [];
        });
        const whole = openai.parse(formats.at(-1)?.wrap(text) ?? "", tools);
        // A format without an end mark may read a shorter object; one with an end mark never does.
        if (whole.calls.length === 1 && whole.error === null && text.startsWith("{"))
          for (const reading of readings) expect(reading).toMatchObject([{ arguments: whole.calls[0]?.arguments }]);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("readWholeJson", () => {
  it.each<[string, Json]>([
    ["{'a': 'it\\'s', \"b\": 'say \"x\"'}", { a: "it's", b: 'say "x"' }],
    ["[True, False, None,]", [true, false, null]],
    ["```\n[1]```", [1]],
    ['```json\n{"a": ```[1]```}\n```', { a: [1] }],
  ])("mends %j", (text, value) => {
    const read = readWholeJson(text);
    expect(read.value).toEqual(value);
    expect(read.mends.length).toBeGreaterThan(0);
  });
  it.each([
    "{a: 1}",
    "{'a': 'it's'}",
    "[1 2]",
    "[,]",
    "[1,,]",
    "{,}",
    '{"a" = 1}',
    '{"a": 1',
    '["a]',
    "[undefined]",
    "[NaN]",
    "[01]",
    "[0x1]",
    '["\\x41"]',
    "[1] // one",
    "['''a''']",
    '["\u0000"]',
    "[TRUE]",
    "```[1]",
    "(1,)",
  ])("guesses nothing about %j", (text) => {
    expect(() => readWholeJson(text)).toThrow(/./);
  });
});
