import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readSamples } from "./read-samples.ts";

const one = (text: string) => readSamples(text, ["a:b"])?.get("a:b") ?? null;

describe("readSamples", () => {
  test.each([
    ["without labels", "a:b 3", [3]],
    ["with labels, a comma at their end, and a time", 'a:b{x="1",y="2",} 4.5 1700000000000', [4.5]],
    ["with none between braces", "a:b{} 1", [1]],
    ["with escapes and braces in a label", String.raw`a:b{x="a\"}\\ 9 \n"} 2e-3`, [0.002]],
    ["of several replicas", 'a:b{engine="0"} 1\n# HELP a:b of what\na:b{engine="1"} 2\r\n\n', [1, 2]],
    ["beside names that begin alike", "a:b_total 7\na:bc 8\nx_a:b 9\na:b 1", [1]],
    ["that are no numbers to reckon with", "a:b NaN\na:b +Inf\na:b -Inf", [Number.NaN, Infinity, -Infinity]],
    ["beside lines of others that are broken", "what is this?\na:b 1", [1]],
    ["of which there are none", "<html></html>", []],
    ["spoiled: no value", "a:b", null],
    ["spoiled: words", "a:b many", null],
    ["spoiled: a label that does not end", 'a:b{x="1} 2', null],
    ["spoiled: two values and more", "a:b 1 2 3", null],
  ])("samples %s", (_, text, values) => {
    expect(one(text)).toEqual(values);
  });

  const text = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "}", "{", " ", ",", "=", "é", "#") });
  const escaped = (value: string) => value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
  const written = fc.record({
    name: fc.constantFrom("a:b", "a:b_total", "other"),
    labels: fc.array(fc.tuple(fc.constantFrom("x", "y_1", "_z"), text), { maxLength: 3 }),
    value: fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true })),
    at: fc.option(fc.nat()),
    gap: fc.constantFrom(" ", "  ", "\t"),
  });
  test("gives back every value that was written, whatever its labels hold", () => {
    fc.assert(
      fc.property(fc.array(written), (lines) => {
        const body = lines.map(({ name, labels, value, at, gap }) => {
          const list = labels.map(([key, held]) => `${key}="${escaped(held)}"`).join(",");
          return `${name}${list === "" ? "" : `{${list}}`}${gap}${value}${at === null ? "" : `${gap}${at}`}`;
        });
        expect(one(`# TYPE a:b gauge\n${body.join("\n")}\n`)).toEqual(
          // Minus zero is written as zero.
          lines.filter(({ name }) => name === "a:b").map(({ value }) => value + 0),
        );
      }),
    );
  });

  test("takes any text, without hanging", () => {
    fc.assert(
      fc.property(text, (tail) => {
        const values = one(`a:b${tail}`);
        expect(values === null || values.every((value) => typeof value === "number")).toBe(true);
      }),
    );
    expect(one(`a:b{${" ".repeat(50_000)}`)).toBeNull();
    expect(one(`a:b{${'x="1",'.repeat(20_000)}`)).toBeNull();
  });
});
