import { describe, expect, it } from "vitest";
import { otherDialect } from "./other-dialect.ts";
import { type DialectName, dialects } from "./registry.ts";

const names = Object.keys(dialects) as DialectName[];
const written = (name: DialectName, content = ""): string =>
  dialects[name].renderTurn({ content, calls: [{ name: "get", arguments: { key: "a" } }] });

describe("the dialect a text is written in", () => {
  const pairs = names.flatMap((run) => names.filter((other) => other !== run).map((other) => [run, other] as const));
  // Formats that another one reads as its own: nothing to say.
  const shared = new Set([
    "pythonic llama-pythonic",
    "llama-pythonic pythonic",
    "qwen-xml skyrl",
    "llama-json code-blocks",
  ]);

  it.each(pairs)("a run of %s that gets %s: the calls are read, or the other is named", (run, other) => {
    const text = written(other, "I try.");
    const { calls } = dialects[run].parse(text, [{ name: "get", description: "", parameters: {} }]);
    if (shared.has(`${run} ${other}`)) expect(calls).toMatchObject([{ name: "get", arguments: { key: "a" } }]);
    else {
      expect(calls).toEqual([]);
      expect(otherDialect(text, dialects[run])).toBe(other === "llama-pythonic" ? "pythonic" : other);
    }
  });
  it.each(names)("%s sees nothing foreign in its own calls, in words, or in thoughts", (name) => {
    const dialect = dialects[name];
    expect(otherDialect(written(name), dialect)).toBeNull();
    for (const text of ["", "I see a[i] and {x} here.", "f(1)", '{"a": 1}'])
      expect(otherDialect(text, dialect)).toBeNull();
    const others = names.filter((other) => other !== name).map((other) => written(other));
    for (const thought of others) {
      expect(otherDialect(`<think>${thought}</think>so`, dialect)).toBeNull();
      expect(otherDialect(`<think>${thought}`, dialect)).toBeNull();
      expect(otherDialect(`[THINK]${thought}[/THINK]so`, dialect)).toBeNull();
    }
  });
});
