import type { JsonObject } from "@rolldeck/contracts/segments";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { pythonic } from "./pythonic.ts";

const parsed = (text: string) => {
  const { content, calls, error } = pythonic.parse(text, getAndFinish);
  return { content, error, calls: calls.map((call) => [call.name, call.arguments]) };
};

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
    expect(parsed(text)).toEqual({ content: "", error: null, calls: [["f", args]] });
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
    expect(parsed(text).error).toMatch(message);
  });
  it("never lets one bad call hide the good ones, nor runs what stands in a string", () => {
    const mixed = parsed('[get("x"), get(key="a"), f(b=[}), get(key="b")]');
    expect(mixed.calls).toEqual([
      ["get", { key: "a" }],
      ["get", { key: "b" }],
    ]);
    expect(mixed.error?.split("\n")).toHaveLength(2);
    expect(parsed('[f("(", 1), get(key="b")]').calls).toEqual([["get", { key: "b" }]]);
    expect(parsed('[get(key="a]\n[get(key="b")]').calls).toEqual([["get", { key: "b" }]]);
    expect(parsed(`[write(x y="[rm(path='/')]")]`).calls).toEqual([]);
  });
  it("keeps the text around the list", () => {
    const result = parsed('I look at a[i].\n```python\n[get(key="a")]\n```');
    expect(result).toMatchObject({ error: null, calls: [["get", { key: "a" }]] });
    expect(result.content).toBe("I look at a[i].\n```python\n\n```");
    expect(parsed("see list[int(x)] or [1, 2] or [word]")).toMatchObject({ error: null, calls: [] });
  });
});
