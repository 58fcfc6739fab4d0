import type { JsonObject } from "@rolldeck/contracts/segments";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { llamaJson } from "./llama-json.ts";
import { llamaPythonic } from "./llama-pythonic.ts";

const read = (text: string, dialect = llamaJson) => {
  const { calls, ...parsed } = dialect.parse(text, getAndFinish);
  return { ...parsed, calls: calls.map((call): [string, JsonObject] => [call.name, call.arguments]) };
};
const get = ["get", { key: "a" }];
const finish = ["finish", { answer: "7" }];
const getText = '{"name": "get", "parameters": {"key": "a"}}';
const finishText = '{"name": "finish", "parameters": {"answer": "7"}}';

describe("llama-json", () => {
  it.each<[string, string]>([
    [getText, ""],
    [`<|python_tag|>${getText}`, ""],
    [`<|python_tag|> \n${getText}`, ""],
    [`I look.\n${getText}`, "I look."],
    [`${getText} and that is all`, "and that is all"],
    ['{"type": "function", "name": "get", "parameters": {"key": "a"}}', ""],
  ])("reads %j", (text, content) => {
    expect(read(text)).toEqual({ calls: [get], content, reasoning: "", error: null, repairs: [] });
  });
  it("reads several, parted by semicolons or line breaks", () => {
    for (const between of ["; ", ";", "\n", "\n\n", "\n<|python_tag|>", "<|python_tag|>"]) {
      expect(read(getText + between + finishText)).toMatchObject({ calls: [get, finish], content: "", error: null });
    }
  });
  it.each([
    '{"name": "Bob", "age": 5}',
    '{"answer": 7}',
    '{"type": "note", "text": "hm"}',
    `see ${getText}`,
    '{"name": "Bob", "age":',
    "{name: 1}",
    "[1, 2]",
    `<tool_call>\n${getText}\n</tool_call>`,
    '"name"',
  ])("leaves %j to the content", (text) => {
    expect(read(text)).toEqual({ calls: [], content: text, reasoning: "", error: null, repairs: [] });
  });
  it.each<[string, RegExp]>([
    ['{"name": "get", "parameters": {"key": }}', /expected a JSON value, found "}}/],
    ['{"name": "get", "parameters": {"key": "a"', /expected , after a value, found the end/],
    ['{"name": "get", "parameters": {"key": "say "hi""}}', /expected , after a value, found "hi/],
    ['{"name": "get", "params": {"key": "a"}}', /beside "name" and "parameters" there must be nothing, found "params"/],
    ['{"name": "get", "parameters": ["a"]}', /"parameters" must be a JSON object/],
    ["<|python_tag|>print(1)", /expected a JSON value, found "print\(1\)"/],
    ["<|python_tag|>[1]", /expected a JSON object with "name" and "parameters"/],
  ])("tells what is wrong with %j, and reads the next call", (text, message) => {
    expect(read(text)).toMatchObject({ calls: [], error: expect.stringMatching(message) });
    const next = read(`${text}\n${finishText}`);
    expect(next.calls).toEqual([finish]);
    expect(next.error).toMatch(/^tool call: /);
  });
  it.each<[string, RegExp]>([
    ['{"name": "get", "arguments": {"key": "a"}}', /"arguments" was read as "parameters"/],
    ["{'name': 'get', 'parameters': {'key': 'a'}}", /single quotes/],
    ['{"name": "get", "parameters": {"key": "a",}}', /comma/],
    ['{"name": "get", "parameters": "{\\"key\\": \\"a\\"}"}', /JSON text/],
  ])("mends %j and says so", (text, repair) => {
    expect(read(text)).toMatchObject({ calls: [get], error: null, repairs: [expect.stringMatching(repair)] });
  });
  it("runs nothing that stands in a string", () => {
    const inner = JSON.stringify(`x; ${finishText}\n${finishText}`);
    expect(read(`{"name": "get", "parameters": {"key": ${inner}}}`).calls).toHaveLength(1);
    expect(read(`{"name": "get", "parameters": {"key": ${inner} oops}}`).calls).toEqual([]);
  });
});

describe("llama-pythonic", () => {
  it.each<[string, string]>([
    ['[get(key="a"), finish(answer="7")]', ""],
    ['<|python_start|>[get(key="a"), finish(answer="7")]<|python_end|>', ""],
    ['<|python_start|>\n[get(key="a"), finish(answer="7")]\n<|python_end|>', ""],
    ['<|python_tag|>[get(key="a"), finish(answer="7")]', ""],
    ['So: <|python_start|>[get(key="a")]<|python_end|><|python_start|>[finish(answer="7")]', "So:"],
    ['<|python_start|>hm<|python_end|>[get(key="a"), finish(answer="7")]', "hm"],
  ])("reads %j", (text, content) => {
    expect(read(text, llamaPythonic)).toEqual({
      calls: [get, finish],
      content,
      reasoning: "",
      error: null,
      repairs: [],
    });
  });
  it("keeps a mark inside a string", () => {
    const text = '<|python_start|>[get(key="<|python_end|>")]<|python_end|>';
    expect(read(text, llamaPythonic)).toMatchObject({ calls: [["get", { key: "<|python_end|>" }]], content: "" });
  });
  it("tells what is wrong and runs the good calls", () => {
    const text = '<|python_start|>[get("a"), finish(answer="7")]<|python_end|>';
    expect(read(text, llamaPythonic)).toMatchObject({
      calls: [finish],
      error: expect.stringMatching(/^get: arguments must be named/),
    });
  });
});
