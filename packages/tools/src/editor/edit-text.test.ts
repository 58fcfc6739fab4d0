/** What edits leave alone, whatever the text; and lines that look alike. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findText, insertLines, replaceMatch } from "./edit-text.ts";
import { similarity, similarLines } from "./similar-lines.ts";
import { decodeText, encodeText } from "./text-codec.ts";

describe("properties", () => {
  const line = fc.constantFrom("", "a", "\tb", "é☃", "x\ry", "old");
  const text = fc
    .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "")), { maxLength: 8 })
    .map((lines) => lines.flat().join(""));

  it("any bytes that are text decode and encode to themselves", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const decoded = decodeText(bytes);
        if (decoded === null) return;
        expect(Buffer.from(encodeText(decoded) ?? [])).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 2000 },
    );
    const marked = fc.tuple(
      fc.constantFrom([0xff, 0xfe], [0xfe, 0xff], [0xef, 0xbb, 0xbf]),
      fc.uint8Array({ maxLength: 9 }),
    );
    fc.assert(
      fc.property(marked, ([mark, rest]) => {
        const bytes = Buffer.from([...mark, ...rest]);
        const decoded = decodeText(bytes);
        if (decoded !== null) expect(Buffer.from(encodeText(decoded) ?? [])).toEqual(bytes);
      }),
    );
  });
  it("a replacement leaves what is around it, and the other way round is the text again", () => {
    fc.assert(
      fc.property(text, text, text, text, (before, old, after, fresh) => {
        fc.pre(old !== "");
        const whole = before + old + after;
        const match = { start: before.length, end: before.length + old.length, line: 1 };
        const edited = replaceMatch(whole, match, fresh);
        expect(edited.startsWith(before)).toBe(true);
        expect(edited.endsWith(after)).toBe(true);
        const middle = edited.slice(before.length, edited.length - after.length);
        expect(middle.replaceAll("\r\n", "\n")).toBe(fresh.replaceAll("\r\n", "\n"));
        expect(replaceMatch(whole, match, old)).toBe(whole);
      }),
    );
  });
  it("every match is the text that was sought, on its line", () => {
    fc.assert(
      fc.property(text, fc.constantFrom("a", "\n", "a\n\tb", "old\r\n", "é☃"), (whole, wanted) => {
        for (const { start, end, line: at } of findText(whole, wanted)) {
          const found = whole.slice(start, end).replaceAll("\r\n", "\n");
          expect(found).toBe(wanted.replaceAll("\r\n", "\n"));
          expect(at).toBe(whole.slice(0, start).split("\n").length);
        }
      }),
    );
  });
  it("inserted lines can be cut out again", () => {
    fc.assert(
      fc.property(text, fc.nat(9), fc.constantFrom("n", "n\nm", ""), (whole, after, added) => {
        fc.pre(after <= whole.split("\n").length);
        const edited = insertLines(whole, after, added);
        const lines = edited.split("\n");
        lines.splice(after, added.split("\n").length);
        const plain = (value: string) => value.replaceAll("\r\n", "\n").replace(/\r$/u, "");
        expect(plain(lines.join("\n"))).toBe(plain(whole));
      }),
    );
  });
});

describe("similar lines", () => {
  it("rate as difflib does", () => {
    expect(similarity("abcd", "bcde")).toBe(0.75);
    expect(similarity("", "")).toBe(1);
    expect(similarity("private", "private volatile currentThread")).toBeCloseTo(14 / 37);
    // In a few hundred milliseconds, not minutes: lines of one letter are compared until enough was done.
    expect(similarLines("a".repeat(199), Array(2000).fill("ab".repeat(199)), 3)).toHaveLength(3);
    expect(similarLines("apple", ["ape", "appel", "peach", "puppy"], 3)).toEqual(["appel", "ape"]);
  });
});
