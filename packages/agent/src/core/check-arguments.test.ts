import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkArguments } from "./check-arguments.ts";

const schema: JsonObject = {
  type: "object",
  properties: {
    path: { type: "string", minLength: 1 },
    line: { type: "integer", minimum: 1 },
    ratio: { type: "number", maximum: 1 },
    all: { type: "boolean" },
    mode: { enum: ["r", "w"] },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    note: { type: ["string", "null"] },
    at: { type: "object", properties: { x: { type: "integer" } }, required: ["x"], additionalProperties: false },
  },
  required: ["path"],
  additionalProperties: false,
};
const passed = (args: JsonObject) => {
  const checked = checkArguments(args, schema);
  return checked.ok ? checked.arguments : checked.problems;
};

describe("checkArguments", () => {
  it("passes what fits, unchanged", () => {
    const args = { path: "a", line: 3, ratio: 1, all: false, mode: "w", tags: ["x"], note: null, at: { x: 0 } };
    expect(checkArguments(args, schema)).toEqual({ ok: true, arguments: args, coercions: [] });
  });
  it.each<[JsonObject, string]>([
    [{}, "path: missing"],
    [{ path: 5 }, "path: expected string, got integer"],
    [{ path: null }, "path: expected string, got null"],
    [{ path: "" }, "path: its length must be at least 1"],
    [{ path: "a", cmd: "ls" }, "cmd: no such argument"],
    [{ path: "a", line: 1.5 }, "line: expected integer, got number"],
    [{ path: "a", line: "1.5" }, "line: expected integer, got string"],
    [{ path: "a", line: "9007199254740993" }, "line: expected integer, got string"],
    [{ path: "a", line: " 4" }, "line: expected integer, got string"],
    [{ path: "a", line: 0 }, "line: the value must be at least 1"],
    [{ path: "a", ratio: 2 }, "ratio: the value must be at most 1"],
    [{ path: "a", all: "yes" }, "all: expected boolean, got string"],
    [{ path: "a", all: 1 }, "all: expected boolean, got integer"],
    [{ path: "a", mode: "x" }, 'mode: must be one of ["r","w"]'],
    [{ path: "a", tags: "x" }, "tags: expected array, got string"],
    [{ path: "a", tags: [1] }, "tags[0]: expected string, got integer"],
    [{ path: "a", tags: ["a", "b", "c"] }, "tags: its number of items must be at most 2"],
    [{ path: "a", at: {} }, "at.x: missing"],
    [{ path: "a", at: { x: 1, y: 2 } }, "at.y: no such argument"],
  ])("says what is wrong with %j", (args, problem) => {
    expect(passed(args)).toEqual([problem]);
  });
  it("coerces only what is written down, and says so", () => {
    expect(checkArguments({ path: "a", line: "3", all: "true", ratio: "0.5", mode: null, sql: null }, schema)).toEqual({
      ok: true,
      arguments: { path: "a", line: 3, all: true, ratio: 0.5 },
      coercions: [
        'line: "3" read as integer',
        'all: "true" read as boolean',
        'ratio: "0.5" read as number',
        "mode: null dropped",
        "sql: null dropped",
      ],
    });
  });
  it("reads text as what the schema wants, where it wants no string", () => {
    const wide: JsonObject = {
      properties: {
        tags: { type: "array", items: { type: "integer" } },
        at: { type: ["object", "null"] },
        any: {},
        text: { anyOf: [{ type: "string" }, { type: "integer" }] },
        level: { enum: [1, 2] },
      },
    };
    expect(checkArguments({ tags: '["1", 2]', at: "None", any: "[1]", text: "5", level: "2" }, wide)).toEqual({
      ok: true,
      arguments: { tags: [1, 2], at: null, any: "[1]", text: "5", level: 2 },
      coercions: [
        'tags: "[\\"1\\", 2]" read as array',
        'tags[0]: "1" read as integer',
        'at: "None" read as null',
        'level: "2" read as integer',
      ],
    });
    for (const tags of ["[1,]", "['a']", '{"a": 1}', "[1] and more", "1"]) {
      expect(checkArguments({ tags }, wide)).toMatchObject({ problems: ["tags: expected array, got string"] });
    }
    const long = checkArguments({ tags: `[${"1,".repeat(500)}1]` }, wide);
    expect(long.ok && long.coercions[0]?.length).toBeLessThan(200);
  });
  it("resolves local references, allOf, anyOf and oneOf", () => {
    const node: JsonObject = {
      $defs: {
        node: {
          type: "object",
          properties: { value: { type: "integer" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } },
          required: ["value"],
          additionalProperties: false,
        },
      },
      properties: {
        list: { allOf: [{ $ref: "#/$defs/node" }] },
        shape: {
          oneOf: [
            {
              type: "object",
              properties: { side: { type: "number" } },
              required: ["side"],
              additionalProperties: false,
            },
            {
              type: "object",
              properties: { ends: { type: "array" } },
              required: ["ends"],
              additionalProperties: false,
            },
            { type: "string", minLength: 2 },
          ],
        },
      },
    };
    const problems = (args: JsonObject) => {
      const checked = checkArguments(args, node);
      return checked.ok ? [] : checked.problems;
    };
    expect(checkArguments({ list: { value: "1", next: { value: 2, next: null } }, shape: { ends: [] } }, node)).toEqual(
      {
        ok: true,
        arguments: { list: { value: 1, next: { value: 2, next: null } }, shape: { ends: [] } },
        coercions: ['list.value: "1" read as integer'],
      },
    );
    expect(problems({ list: { value: 1, next: { value: "x" } } })).toEqual([
      "list.next.value: expected integer, got string",
    ]);
    expect(problems({ shape: {} })).toEqual(["shape: fits none of the 3 allowed shapes"]);
    expect(problems({ shape: "a" })).toEqual(["shape: its length must be at least 2"]);
    expect(problems({ shape: 5 })).toEqual(["shape: expected object or string, got integer"]);
  });
  it("ends on schemas that refer to themselves for ever", () => {
    const circle: JsonObject = { $defs: { a: { $ref: "#/$defs/a" } }, properties: { x: { $ref: "#/$defs/a" } } };
    expect(checkArguments({ x: 1 }, circle)).toMatchObject({ ok: true });
    const tree: JsonObject = { properties: { x: { $ref: "#/$defs/t" } } };
    const branch = { properties: { x: { $ref: "#/$defs/t" } }, required: ["y"] };
    const wide: JsonObject = { ...tree, $defs: { t: { anyOf: [branch, branch, branch, branch] } } };
    let deep: JsonObject = {};
    for (let i = 0; i < 60; i++) deep = { x: deep };
    expect(checkArguments(deep, wide)).toMatchObject({ ok: false });
  });
  it("says the first few of many problems", () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${"k".repeat(500)}${i}`, 1]));
    const checked = checkArguments({ ...many, path: "a" }, schema);
    expect(checked.ok || checked.problems.join("").length).toBeLessThan(1500);
    expect(checked).toMatchObject({ problems: expect.arrayContaining(["and 40 more"]) });
  });
  it("drops padded nulls and keeps exactly the tool's own arguments (fault 13)", () => {
    const bash: JsonObject = { properties: { command: { type: "string" } }, required: ["command"] };
    expect(checkArguments({ command: "ls", sql: null }, bash)).toEqual({
      ok: true,
      arguments: { command: "ls" },
      coercions: ["sql: null dropped"],
    });
    expect(checkArguments({ command: null, sql: null }, bash)).toMatchObject({
      problems: ["command: expected string, got null"],
    });
    const loose: JsonObject = { properties: { limit: { anyOf: [{ type: "integer" }, { type: "string" }] } } };
    expect(checkArguments({ limit: null }, loose)).toMatchObject({ arguments: {}, coercions: ["limit: null dropped"] });
  });
  it("keeps unknown arguments where the schema allows them", () => {
    expect(checkArguments({ x: 1, y: null }, { type: "object" })).toMatchObject({
      ok: true,
      arguments: { x: 1, y: null },
    });
    const typed: JsonObject = { properties: {}, additionalProperties: { type: "integer" } };
    expect(checkArguments({ x: "4" }, typed)).toMatchObject({ ok: true, arguments: { x: 4 } });
    expect(checkArguments({ x: "four" }, typed)).toMatchObject({ ok: false });
  });
  it("never throws on any arguments", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("path", "line", "at", "tags", "__proto__", "toString"), fc.jsonValue()),
        (args) => {
          const parsed = JSON.parse(JSON.stringify(args));
          expect(typeof checkArguments(parsed, schema).ok).toBe("boolean");
        },
      ),
    );
  });
});

it("never lets through what it did not look at, whatever the choices", () => {
  const items = { anyOf: [{ type: "integer" }, { type: "string" }] };
  const schema = { type: "object", properties: { list: { type: "array", items } } };
  const list: (number | boolean)[] = Array.from({ length: 120_000 }, (_, n) => n);
  list.push(true);
  expect(checkArguments({ list }, schema)).toEqual({ ok: false, problems: ["arguments: too large to be checked"] });
});
