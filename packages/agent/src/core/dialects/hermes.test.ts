import type { JsonObject } from "@rolldeck/contracts/segments";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { hermes } from "./hermes.ts";

const parsed = (text: string) => {
  const { content, calls, error } = hermes.parse(text, getAndFinish);
  return { content, error, calls: calls.map((call) => [call.name, call.arguments]) };
};

describe("hermes (faults 4 and 5)", () => {
  const wrap = (args: string) => `<tool_call>\n{"name": "bash", "arguments": ${args}}\n</tool_call>`;
  it.each<[string, JsonObject]>([
    ['{"command":"echo [1,]"}', { command: "echo [1,]" }],
    ['{"command":"mkdir -p out/{a,b"}', { command: "mkdir -p out/{a,b" }],
    ['{"command":"echo </tool_call>"}', { command: "echo </tool_call>" }],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}')],
    ["{}", {}],
  ])("runs %s unchanged", (args, expected) => {
    expect(parsed(wrap(args))).toEqual({ content: "", error: null, calls: [["bash", expected]] });
  });
  it.each([
    ['{"command":"ls",,}', /expected a key in double quotes, found ",}/],
    ["{'command': 'it's'}", /double quotes/],
    ['{"command":"a\u0001b"}', /control character/],
    ['{"path":"a.py","content":"get("K")"}', /expected , after a value/],
    ['```json\n{"command":"ls"}', /expected a JSON value/],
    ['{"command":"ls"} and that is all', /expected , after a value/],
    ['{"path":"a","range":\\n[1,2]}', /expected a JSON value/],
    ["[1]", /"arguments" must be a JSON object/],
    ['"{"', /"arguments" must be a JSON object/],
    ["null", /"arguments" must be a JSON object/],
    ['{"n": 9007199254740993}', /too large/],
    ['{"a":1,"a":2}', /given twice/],
    ['{"s":"\\x41"}', /unknown escape/],
  ])("answers %s with the parser's complaint", (args, message) => {
    const { calls, error } = parsed(wrap(args));
    expect(calls).toEqual([]);
    expect(error).toMatch(message);
  });
  it.each<[string, JsonObject, RegExp]>([
    ['{"command":"ls",}', { command: "ls" }, /^bash: a comma before a closing bracket was left out$/],
    [
      "{'command': 'ls', 'background': True}",
      { command: "ls", background: true },
      /^bash: strings in single quotes .*; True, False or None/,
    ],
    ['{"command":"a\n\tb"}', { command: "a\n\tb" }, /raw line break/],
    [String.raw`{"command":"it\'s"}`, { command: "it's" }, /escaped single quote/],
    ['```json\n{"command":"ls"}\n```', { command: "ls" }, /code fence/],
    ['"{\\"command\\": \\"ls\\"}"', { command: "ls" }, /JSON text/],
  ])("mends %s and says so", (args, expected, repair) => {
    const { calls, error, repairs } = hermes.parse(wrap(args), getAndFinish);
    expect({ error, calls: calls.map((call) => call.arguments) }).toEqual({ error: null, calls: [expected] });
    expect(repairs).toEqual([expect.stringMatching(repair)]);
    expect(calls[0]?.raw).toBe(wrap(args));
  });
  it("mends the wrapping: a fence, the other family's key, a missing tag", () => {
    const texts = [
      '<tool_call>```json\n{"name": "get", "arguments": {"key": "a"}}\n```</tool_call>',
      '<tool_call>{"name": "get", "parameters": {"key": "a"}}</tool_call>',
      '<tool_call>{"name": "get", "arguments": {"key": "a"}}',
    ];
    for (const text of texts) {
      expect(hermes.parse(text, getAndFinish)).toMatchObject({
        error: null,
        calls: [{ name: "get", arguments: { key: "a" } }],
        repairs: [expect.stringMatching(/^get: /)],
      });
    }
  });
  it("never mends a string over a tag", () => {
    const text = '<tool_call>{"name": "get", "arguments": {"key": "a</tool_call>\n<tool_call>{"}}</tool_call>';
    expect(hermes.parse(text, getAndFinish)).toMatchObject({
      calls: [],
      error: expect.stringMatching(/raw line break/),
    });
  });
  it("reads a call whose closing tag is missing up to the next tag or the end", () => {
    const open = '<tool_call>{"name": "get", "arguments": {"key": "a"}}';
    const next = '<tool_call>{"name": "finish", "arguments": {"answer": "7"}}</tool_call>';
    expect(parsed(open)).toMatchObject({ error: null, calls: [["get", { key: "a" }]] });
    expect(parsed(`so: ${open}\n${next}`)).toMatchObject({
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
      const { calls, error } = parsed(`${text}\n${good}`);
      expect(calls).toEqual([["finish", { answer: "7" }]]);
      expect(error).toMatch(/^tool call: /);
    }
  });
  it("writes tools as JSON lines", () => {
    const [, , line = ""] = hermes.describeTools(getAndFinish).split("\n");
    expect(JSON.parse(line)).toMatchObject({ type: "function", function: { name: "get" } });
  });
});
