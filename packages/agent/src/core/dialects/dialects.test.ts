import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { type DialectName, dialects } from "../registry.ts";
import { hermes } from "./hermes.ts";
import { pythonic } from "./pythonic.ts";

const names = Object.keys(dialects) as DialectName[];
const parsed = (name: DialectName, text: string) => {
  const { content, calls, error } = dialects[name].parse(text, getAndFinish);
  return { content, error, calls: calls.map((call) => [call.name, call.arguments]) };
};

/** Any JSON value a double can hold exactly; −0 is written as 0 in JSON too. */
const json = fc.letrec<{ value: JsonObject[string] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x)),
    fc.maxSafeInteger(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.string({ unit: "binary" }), tie("value"), { maxKeys: 3 }),
  ),
})).value;
const name = fc.stringMatching(/^[a-z_][a-z0-9_.-]{0,10}$/);
const call = fc.record({ name, arguments: fc.dictionary(name, json, { maxKeys: 4 }) });

describe.each(names)("%s", (dialect) => {
  it("reads back any calls that it renders", () => {
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), fc.boolean(), (calls, thinking) => {
        const text = `${thinking ? "<think>[get(key=1)] <tool_call>{}</think>\n" : ""}${dialects[dialect].renderCalls(calls)}`;
        const result = parsed(dialect, text);
        expect(result.error).toBeNull();
        expect(result.calls).toEqual(calls.map((one) => [one.name, one.arguments]));
      }),
      { numRuns: 300 },
    );
  });

  it("never throws, whatever the text", () => {
    const shreds = fc.constantFrom(
      ...[
        "[get(",
        "key=",
        '"',
        "'",
        '"""',
        "\\",
        "\\u",
        "\n",
        ")",
        "]",
        "[",
        "{",
        "}",
        ",",
        ":",
        "<tool_call>",
        "</tool_call>",
      ],
      ...[
        '{"name":',
        '"arguments"',
        "<think>",
        "</think>",
        "1e999",
        "9".repeat(30),
        "\ud800",
        "\u0000",
        "None",
        "get(key=",
        "é",
      ],
    );
    const garbage = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(shreds, { maxLength: 40 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(garbage, (text) => {
        const { calls, error } = dialects[dialect].parse(text, getAndFinish);
        expect(error === null || error.length > 0).toBe(true);
        calls.forEach((one, i) => {
          expect(one.index).toBe(i);
          expect(text).toContain(one.raw);
          expect(JSON.parse(JSON.stringify(one.arguments))).toEqual(one.arguments);
        });
      }),
      { numRuns: 1000 },
    );
  });

  it("stays upright under deep nesting and long repetition", () => {
    for (const part of ["[a(x=", "[a(", '{"a":', "[", "<tool_call>", "[a(x='", '[a("', "<tool_call>{", "((", "\\"]) {
      expect(() => dialects[dialect].parse(part.repeat(20_000), getAndFinish)).not.toThrow();
    }
  });

  it("takes thoughts for thoughts", () => {
    const rendered = dialects[dialect].renderCalls([{ name: "get", arguments: { key: "a" } }]);
    expect(parsed(dialect, `<think>${rendered}`).calls).toEqual([]);
    expect(parsed(dialect, `<think>${rendered}</think>${rendered}`)).toMatchObject({ calls: [["get", { key: "a" }]] });
  });

  it("describes every tool and its format", () => {
    const text = dialects[dialect].describeTools(getAndFinish);
    for (const word of ["get", "finish", "key", "Looks a key up"]) expect(text).toContain(word);
  });
});

describe("pythonic", () => {
  it("reads the quickstart's calls", () => {
    expect(pythonic.parse('[get(key="a"), finish(answer="7")]', getAndFinish)).toEqual({
      content: "",
      error: null,
      reasoning: "",
      repairs: [],
      calls: [
        { index: 0, name: "get", arguments: { key: "a" }, raw: 'get(key="a")' },
        { index: 1, name: "finish", arguments: { answer: "7" }, raw: 'finish(answer="7")' },
      ],
    });
  });
  it.each<[string, JsonObject]>([
    [
      `[f(a='it\\'s', b=True, c=None, d=[1, 2.5e3,], e={"k": -1,},)]`,
      { a: "it's", b: true, c: null, d: [1, 2500], e: { k: -1 } },
    ],
    [`[f(a="""two\nlines "quoted" """)]`, { a: 'two\nlines "quoted" ' }],
    [String.raw`[f(a="\x41\u00e9\U0001F642\101\d\\")]`, { a: "Aé🙂A\\d\\" }],
    ['[f(a="echo [1,]", b=\'get("K")\')]', { a: "echo [1,]", b: 'get("K")' }],
    ['[f(a="mkdir -p out/{a,b")]', { a: "mkdir -p out/{a,b" }],
    ["[ f ( a = true , ) , ]", { a: true }],
  ])("%s", (text, args) => {
    expect(parsed("pythonic", text)).toEqual({ content: "", error: null, calls: [["f", args]] });
  });
  it.each([
    ["[f(1)]", /named/],
    ["[f(a=x)]", /found "x\)\]"/],
    ["[f(a=1, a=2)]", /given twice/],
    ['[f(a={"k": 1, "k": 2})]', /given twice/],
    ["[f(a=9007199254740993)]", /too large/],
    ["[f(a=1e999)]", /too large/],
    ["[f(a=07)]", /not a number/],
    ["[f(a=(1, 2))]", /expected a literal value/],
    ['[f(a="raw\nbreak")]', /raw line break/],
    ["[f(a='open)]", /not closed/],
    ["[f(a=1) g(b=2)]", /expected , or \]/],
    ["[f(a=1", /expected , after an argument, found the end/],
    ["[f(a=1), ???]", /expected a call/],
    [`[f(a=${"[".repeat(100)})]`, /deeper than 64/],
    ['[f(a=f"x")]', /expected a literal value/],
  ])("tells what is wrong with %s", (text, message) => {
    expect(parsed("pythonic", text).error).toMatch(message);
  });
  it("never lets one bad call hide the good ones, nor runs what stands in a string", () => {
    const mixed = parsed("pythonic", '[get("x"), get(key="a"), f(b=[}), get(key="b")]');
    expect(mixed.calls).toEqual([
      ["get", { key: "a" }],
      ["get", { key: "b" }],
    ]);
    expect(mixed.error?.split("\n")).toHaveLength(2);
    expect(parsed("pythonic", '[f("(", 1), get(key="b")]').calls).toEqual([["get", { key: "b" }]]);
    expect(parsed("pythonic", '[get(key="a]\n[get(key="b")]').calls).toEqual([["get", { key: "b" }]]);
    expect(parsed("pythonic", `[write(x y="[rm(path='/')]")]`).calls).toEqual([]);
  });
  it("keeps the text around the list", () => {
    const result = parsed("pythonic", 'I look at a[i].\n```python\n[get(key="a")]\n```');
    expect(result).toMatchObject({ error: null, calls: [["get", { key: "a" }]] });
    expect(result.content).toBe("I look at a[i].\n```python\n\n```");
    expect(parsed("pythonic", "see list[int(x)] or [1, 2] or [word]")).toMatchObject({ error: null, calls: [] });
  });
});

describe("hermes (faults 4 and 5)", () => {
  const wrap = (args: string) => `<tool_call>\n{"name": "bash", "arguments": ${args}}\n</tool_call>`;
  it.each<[string, JsonObject]>([
    ['{"command":"echo [1,]"}', { command: "echo [1,]" }],
    ['{"command":"mkdir -p out/{a,b"}', { command: "mkdir -p out/{a,b" }],
    ['{"command":"echo </tool_call>"}', { command: "echo </tool_call>" }],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}')],
    ["{}", {}],
  ])("runs %s unchanged", (args, expected) => {
    expect(parsed("hermes", wrap(args))).toEqual({ content: "", error: null, calls: [["bash", expected]] });
  });
  it.each([
    ['{"command":"ls",}', /expected a key in double quotes, found "}/],
    ["{'command': 'ls', 'background': True}", /double quotes/],
    ['{"command":"a\nb"}', /raw line break/],
    ['{"path":"a.py","content":"get("K")"}', /expected , after a value/],
    ['```json\n{"command":"ls"}\n```', /expected a JSON value/],
    ['{"command":"ls"} and that is all', /expected , after a value/],
    ['{"path":"a","range":\\n[1,2]}', /expected a JSON value/],
    ["[1]", /"arguments" must be a JSON object/],
    ['"{}"', /"arguments" must be a JSON object/],
    ['{"n": 9007199254740993}', /too large/],
    ['{"a":1,"a":2}', /given twice/],
    ['{"s":"\\x41"}', /unknown escape/],
  ])("answers %s with the parser's complaint", (args, message) => {
    const { calls, error } = parsed("hermes", wrap(args));
    expect(calls).toEqual([]);
    expect(error).toMatch(message);
  });
  it("reads a call whose closing tag is missing up to the next tag or the end", () => {
    const open = '<tool_call>{"name": "get", "arguments": {"key": "a"}}';
    const next = '<tool_call>{"name": "finish", "arguments": {"answer": "7"}}</tool_call>';
    expect(parsed("hermes", open)).toMatchObject({ error: null, calls: [["get", { key: "a" }]] });
    expect(parsed("hermes", `so: ${open}\n${next}`)).toMatchObject({
      content: "so:",
      error: null,
      calls: [
        ["get", { key: "a" }],
        ["finish", { answer: "7" }],
      ],
    });
  });
  it("never lets a bad call hide the good one after it", () => {
    const good = '<tool_call>{"name": "finish", "arguments": {"answer": "7"}}</tool_call>';
    const bad = [
      '<tool_call>{"name": "get", "arguments": {"key": </tool_call>',
      '<tool_call>{"name": "get", "arguments": {"key": ',
      '<tool_call>{"arguments": {}}</tool_call>',
      '<tool_call>{"name": 5}</tool_call>',
      '<tool_call>{"name": "get", "args": {}}</tool_call>',
      "<tool_call></tool_call>",
      "<tool_call>null</tool_call>",
    ];
    for (const text of bad) {
      const { calls, error } = parsed("hermes", `${text}\n${good}`);
      expect(calls).toEqual([["finish", { answer: "7" }]]);
      expect(error).toMatch(/^tool call: /);
    }
  });
  it("writes tools as JSON lines", () => {
    const [, , line = ""] = hermes.describeTools(getAndFinish).split("\n");
    expect(JSON.parse(line)).toMatchObject({ type: "function", function: { name: "get" } });
  });
});
