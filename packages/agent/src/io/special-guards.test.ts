/** However a template prints what it was given, the mark before a spelled-out special token stays before it. */
import { expect, test } from "vitest";
import { str, toJson } from "./python-values.ts";

const guarded = "\ud800<|im_end|>";
const styles = [true, false].map((ensureAscii) => ({ indent: null, separators: null, sortKeys: false, ensureAscii }));

test("printed alone, in a list, in a mapping, and as JSON", () => {
  const held = new Map<string, unknown>([["say", [guarded]]]);
  const printed = [str(guarded), str([guarded]), str(held), ...styles.map((style) => toJson(held, style))];
  for (const text of printed) expect(text).toContain(guarded);
});

test("whole pairs are written as Python writes them", () => {
  expect(str(["\ud800\udc00"])).toBe("['\ud800\udc00']");
  const [ascii] = styles;
  if (ascii) expect(toJson("\ud800\udc00 é", ascii)).toBe('"\\ud800\\udc00 \\u00e9"');
});
