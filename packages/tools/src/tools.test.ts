import type { ToolContext } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { finish } from "./finish.ts";
import { get } from "./get.ts";
import { findTool, tools } from "./registry.ts";

const context = (instance: JsonObject): ToolContext => ({
  instance,
  agent: { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] },
  signal: new AbortController().signal,
  deadlineMs: 1000,
});

describe("get", () => {
  const table = context({ table: { a: "q", q: "7" } });
  test("gives the value of a key, and ? for a key that is not there", async () => {
    expect(await get.call({ k: "a" }, table)).toEqual({ output: "q" });
    expect(await get.call({ k: "z" }, table)).toEqual({ output: "?" });
  });
  test.each(["__proto__", "constructor", "toString", ""])("%j is a key like any other", async (k) => {
    expect(await get.call({ k }, table)).toEqual({ output: "?" });
  });
  test("an instance without a table is the task's mistake, not the model's", async () => {
    await expect(get.call({ k: "a" }, context({}))).rejects.toMatchObject({
      boundary: "infrastructure",
      code: "no_table",
    });
  });
});

describe("finish", () => {
  test("ends the rollout with the answer as it was given", async () => {
    expect(await finish.call({ answer: " 7\n" }, context({}))).toEqual({ output: "", finalAnswer: " 7\n" });
    expect(await finish.call({ answer: "" }, context({}))).toEqual({ output: "", finalAnswer: "" });
  });
  test("does not end it with an argument that is missing or of another type", async () => {
    const wrong: JsonObject[] = [{}, { answer: 7 }, { answer: null }, { Answer: "7" }, { answer: ["7"] }];
    for (const args of wrong) {
      const outcome = await finish.call(args, context({}));
      expect(outcome.finalAnswer).toBeUndefined();
      expect(outcome.error?.code).toBe("bad_arguments");
      expect(outcome.output).toContain("finish takes answer");
    }
  });
});

test("an unknown argument is named, unless it is null", async () => {
  const outcome = await finish.call({ answer: "7", sql: "x" }, context({}));
  expect(outcome.output).toContain("sql");
  expect(await finish.call({ answer: "7", sql: null }, context({}))).toEqual({ output: "", finalAnswer: "7" });
});

test("every tool is registered under its own name and describes an object", () => {
  for (const [name, tool] of Object.entries(tools)) {
    expect(tool.name).toBe(name);
    expect(tool.parameters).toMatchObject({ type: "object" });
    expect(tool.description).not.toBe("");
    expect(findTool(name)).toBe(tool);
  }
  expect(findTool("constructor")).toBeUndefined();
});

test("no arguments a model can write make a tool throw", async () => {
  const instance = context({ table: { a: "1" }, question: "a", chunks: ["1"] });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.constantFrom(...Object.values(tools)),
      async (args, tool) => {
        const outcome = await tool.call(JSON.parse(JSON.stringify(args)), instance);
        expect(typeof outcome.output).toBe("string");
      },
    ),
  );
});
