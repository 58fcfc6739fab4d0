import type { JsonObject } from "@rolldeck/contracts/segments";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { mistral } from "./mistral.ts";

const read = (text: string) => {
  const { calls, ...parsed } = mistral.parse(text, getAndFinish);
  return { ...parsed, calls: calls.map((call): [string, JsonObject] => [call.name, call.arguments]) };
};
const get = ["get", { key: "a" }];
const finish = ["finish", { answer: "7" }];
const getText = '{"name": "get", "arguments": {"key": "a"}}';
const finishText = '{"name": "finish", "arguments": {"answer": "7"}}';
const named = '[TOOL_CALLS]finish[ARGS]{"answer": "7"}';

describe("mistral", () => {
  it.each<[string, string]>([
    [`[TOOL_CALLS][${getText}, ${finishText}]`, ""],
    [`[TOOL_CALLS] [${getText},\n${finishText}]`, ""],
    [`So.[TOOL_CALLS][{"name": "get", "arguments": {"key": "a"}, "id": "abc123def"}]${named}`, "So."],
    [`[TOOL_CALLS]get[ARGS]{"key": "a"}${named}`, ""],
    [`[TOOL_CALLS]get[CALL_ID]abc123def[ARGS]{"key": "a"}\n${named}`, ""],
    [`[TOOL_CALLS] get [ARGS] {"key": "a"} done ${named}`, "done"],
    [`[THINK]hm [TOOL_CALLS]no[ARGS]{}[/THINK][TOOL_CALLS][${getText}]${named}`, ""],
  ])("reads %j", (text, content) => {
    expect(read(text)).toMatchObject({ calls: [get, finish], content, error: null, repairs: [] });
  });
  it("writes an array", () => {
    expect(
      mistral.renderTurn({ reasoning: "hm", content: "So.", calls: [{ name: "get", arguments: { key: "a" } }] }),
    ).toBe(`[THINK]hm[/THINK]So.[TOOL_CALLS][${getText}]`);
  });
  it.each<[string, RegExp]>([
    [`[TOOL_CALLS][${getText},]`, /comma before a closing bracket/],
    [`[TOOL_CALLS][${getText}`, /missing \]/],
    ["[TOOL_CALLS][{'name': 'get', 'arguments': {'key': 'a'}}]", /single quotes/],
    ['[TOOL_CALLS]get[ARGS]{"key": "a",}', /comma/],
    ['[TOOL_CALLS]get[ARGS]```json\n{"key": "a"}\n```', /fence/],
    ['[TOOL_CALLS][{"name": "get", "parameters": {"key": "a"}}]', /"parameters" was read/],
  ])("mends %j and says so", (text, repair) => {
    expect(read(text)).toMatchObject({
      calls: [get],
      content: "",
      error: null,
      repairs: [expect.stringMatching(repair)],
    });
  });
  it.each<[string, RegExp]>([
    ["[TOOL_CALLS]", /expected name\[ARGS\]\{\.\.\.\} or a JSON array/],
    ['[TOOL_CALLS]get{"key": "a"}', /expected name\[ARGS\]/],
    [getText.replace("{", "[TOOL_CALLS]{"), /expected name\[ARGS\]/],
    ['[TOOL_CALLS]get[ARGS]{"key": ', /get: expected a JSON value, found/],
    ["[TOOL_CALLS]get[ARGS]", /get: expected a JSON value, found/],
    ["[TOOL_CALLS]get[ARGS][1]", /get: the arguments must be a JSON object/],
    ['[TOOL_CALLS][{"name": "get", "arguments": {"key": ', /tool call: expected a JSON value, found/],
    ['[TOOL_CALLS][{"name": "get", "args": {}}]', /there must be nothing, found "args"/],
    ["[TOOL_CALLS][1]", /expected a JSON object/],
  ])("tells what is wrong with %j, and reads the next call", (text, message) => {
    expect(read(text)).toMatchObject({ calls: [], error: expect.stringMatching(message) });
    expect(read(text + named)).toMatchObject({ calls: [finish], error: expect.any(String) });
  });
  it("never lets one element hide the next", () => {
    for (const bad of ['{"name": "get", "arguments": {"key": }}', "{}", '{"name": 5}', '{"a" "b"}', "{'}'}"]) {
      const { calls, error } = read(`[TOOL_CALLS][${bad}, ${finishText}]`);
      expect(calls).toEqual([finish]);
      expect(error).toMatch(/^tool call: /);
    }
  });
  it("runs nothing that stands in a string", () => {
    const inner = JSON.stringify(named);
    expect(read(`[TOOL_CALLS]get[ARGS]{"key": ${inner}}`).calls).toHaveLength(1);
  });
});
