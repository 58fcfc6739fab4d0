import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getAndFinish } from "../../../testing/scripted-rollout.ts";
import { type DialectName, dialects } from "../registry.ts";

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

describe.each(names.filter((one) => one !== "openai"))("%s", (dialect) => {
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
