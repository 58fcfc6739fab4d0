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
