import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeSafeOutput } from "./make-safe-output.ts";

const bytes = (text: string) => new TextEncoder().encode(text).length;

describe("makeSafeOutput", () => {
  it.each([
    ["plain\ttext\r\n", "plain\ttext\r\n"],
    ["a\u0000b", "a\u2400b"],
    ["\u001b[31mred\u001b[0m \u001b[2K\u001b[1;5H", "red "],
    ["\u001b]0;title\u0007x\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\", "xlink"],
    ["\u001b]0;never closed", "0;never closed"],
    ["\u001bPq#0\u001b\\s", "s"],
    ["\ud800a\udc00 \u{1f642}", "\ufffda\ufffd \u{1f642}"],
    ["a\u0008b\u007f", "a\ufffdb\ufffd"],
    ["", ""],
  ])("%j", (output, safe) => {
    expect(makeSafeOutput(output, 1000)).toBe(safe);
  });

  it("keeps head and tail and says how much is missing", () => {
    const output = `start${"é".repeat(500)}end`;
    const safe = makeSafeOutput(output, 200);
    expect(bytes(safe)).toBeLessThanOrEqual(200);
    const cut = /\n\[\.\.\. (\d+) of 1008 bytes cut \.\.\.\]\n/.exec(safe);
    expect(safe.startsWith("start") && safe.endsWith("end")).toBe(true);
    expect(bytes(safe) - bytes(cut?.[0] ?? "") + Number(cut?.[1])).toBe(1008);
  });

  it("is well formed and within the limit for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.integer({ min: 64, max: 400 }), (output, limit) => {
        const safe = makeSafeOutput(output, limit);
        expect(bytes(safe)).toBeLessThanOrEqual(limit);
        expect(safe).not.toMatch(/\p{Surrogate}/u);
        expect(safe.includes("\u0000") || safe.includes("\u001b")).toBe(false);
      }),
    );
  });
});
