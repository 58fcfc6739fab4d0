import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OutputCollector } from "./collect-output.ts";
import { utf8Length } from "./cut-text.ts";
import { makeSafeOutput, safeOutput } from "./make-safe-output.ts";

const bytes = (text: string) => new TextEncoder().encode(text).length;
const numbers = /\n\[\.\.\. (\d+) of (\d+) bytes cut \.\.\.\]\n/;

describe("makeSafeOutput", () => {
  it.each([
    ["plain\ttext\r\n", "plain\ttext\r\n"],
    ["a\u0000b", "a\u2400b"],
    ["\u001b[31mred\u001b[0m \u001b[2K\u001b[1;5H", "red "],
    ["\u001b]0;title\u0007x\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\", "xlink"],
    ["\u001b]0;never closed", "0;never closed"],
    ["\u001bPq#0\u001b\\s", "s"],
    ["\ud800a\udc00 \u{1f642}", "\ufffda\ufffd \u{1f642}"],
    ["a\u007f\u0007b", "a\ufffd\ufffdb"],
    ["", ""],
  ])("%j", (output, safe) => {
    expect(makeSafeOutput(output, 1000)).toBe(safe);
  });

  it("cleans before it cuts, so a progress bar costs nothing", () => {
    const bar = Array.from({ length: 5000 }, (_, percent) => `get ${percent}`).join("\r");
    expect(safeOutput(`${bar}\ndone`, 100)).toEqual({ text: "get 4999\ndone", wholeBytes: null, changed: true });
  });

  it("keeps head and tail and says how much is missing", () => {
    const output = `start${"é".repeat(500)}end`;
    const { text, wholeBytes } = safeOutput(output, 200);
    expect(wholeBytes).toBe(1008);
    expect(bytes(text)).toBeLessThanOrEqual(200);
    const [notice, cut, whole] = numbers.exec(text) ?? [];
    expect(text.startsWith("start") && text.endsWith("end")).toBe(true);
    expect([bytes(text) - bytes(notice ?? "") + Number(cut), Number(whole)]).toEqual([1008, 1008]);
  });

  it.each([-1, 0, 1])("an output of the limit and %i bytes", (more) => {
    const { text, wholeBytes } = safeOutput("x".repeat(500 + more), 500);
    expect(text.length).toBeLessThanOrEqual(500);
    expect(wholeBytes).toBe(more > 0 ? 501 : null);
    expect(numbers.test(text)).toBe(more > 0);
  });

  it("takes 200 MB in one line and knows their size", () => {
    const { text, wholeBytes } = safeOutput(`first ${"y".repeat(200_000_000)} last`, 4096);
    expect(wholeBytes).toBe(200_000_011);
    expect(bytes(text)).toBeLessThanOrEqual(4096);
    expect(text.startsWith("first y") && text.endsWith("y last")).toBe(true);
    expect(numbers.exec(text)?.[2]).toBe("200000011");
  });

  it("begins the end of a very long output with a whole line, so that no code leaves its end behind", () => {
    const { text } = safeOutput("\u001b[31mred\u001b[0m\n".repeat(100_000), 200);
    expect(text.replace(numbers, "|")).toMatch(/^(?:red\n)+(?:r|re|red)?\|(?:d|ed|red)?\n(?:red\n)+$/);
  });

  it("is well formed and within the limit for any text", () => {
    const nasty = fc.constantFrom(
      "\u001b[31",
      "\u001b]0;",
      "\u009b1m",
      "\r",
      "\b",
      "\n",
      "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}",
    );
    const output = fc
      .array(fc.oneof(nasty, fc.string({ unit: "binary" })), { maxLength: 60 })
      .map((all) => all.join(""));
    fc.assert(
      fc.property(output, fc.integer({ min: 0, max: 400 }), (text, limit) => {
        const safe = makeSafeOutput(text, limit);
        expect(bytes(safe)).toBeLessThanOrEqual(limit);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
        expect(safe).not.toMatch(/\p{Surrogate}|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|\r(?!\n)/u);
        expect(JSON.parse(JSON.stringify(safe))).toBe(safe);
      }),
      { numRuns: 500 },
    );
  });
});

describe("cutting", () => {
  it.each([
    ["123456789\u{1f642}x", 10],
    ["123456789\u{1f642}x", 12],
    ["\u{1f468}\u200d\u{1f469}\u200d\u{1f467}", 11],
    ["e\u0301e\u0301", 4],
    ["x", 0],
  ])("%j at %i bytes without room for a notice", (text, limit) => {
    const { text: cut, wholeBytes } = safeOutput(text, limit);
    expect(text.startsWith(cut)).toBe(true);
    expect(bytes(cut)).toBeLessThanOrEqual(limit);
    expect(wholeBytes).toBe(bytes(text));
    expect([...new Intl.Segmenter("und").segment(text)].some(({ index }) => index === cut.length)).toBe(true);
  });

  it("leaves no half of what is shown as one", () => {
    const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466}";
    fc.assert(
      fc.property(fc.integer({ min: 60, max: 300 }), fc.nat(20), (limit, lead) => {
        const text = makeSafeOutput("a".repeat(lead) + family.repeat(30), limit).replace(numbers, "|");
        expect(text).toMatch(new RegExp(`^a*(${family})*\\|(${family})*$`, "u"));
      }),
    );
  });

  it("counts bytes as an encoder does", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(utf8Length(text)).toBe(bytes(text));
      }),
    );
    expect(utf8Length("\ud800a")).toBe(4);
  });
});

describe("collected output", () => {
  const collect = (chunks: readonly (Uint8Array | string)[], headBytes: number, tailBytes: number) => {
    const collector = new OutputCollector({ headBytes, tailBytes });
    for (const chunk of chunks) collector.push(chunk);
    return collector.collected();
  };

  it("is shown like text, with the true size", () => {
    const chunks = Array.from({ length: 1000 }, (_, line) => `line ${line}\n`);
    const shown = safeOutput(collect(chunks, 300, 300), 400);
    expect(shown.wholeBytes).toBe(bytes(chunks.join("")));
    expect(bytes(shown.text)).toBeLessThanOrEqual(400);
    expect(shown.text.startsWith("line 0\n") && shown.text.endsWith("line 999\n")).toBe(true);
    expect(numbers.test(shown.text)).toBe(true);
  });

  it("says what is gone even where what is left fits", () => {
    const shown = safeOutput(collect(["a".repeat(50), "b".repeat(5000), "c".repeat(50)], 50, 50), 400);
    expect(shown.text).toBe(`${"a".repeat(50)}\n[... 5000 of 5100 bytes cut ...]\n${"c".repeat(50)}`);
    expect(shown.wholeBytes).toBe(5100);
  });

  it("is the same however the stream is split, and holds the ends of what came", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 200 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(30)), fc.nat(60), fc.integer({ min: 1, max: 60 }), (all, sizes, head, tail) => {
        const encoded = new TextEncoder().encode(all);
        const chunks: Uint8Array[] = [];
        let at = 0;
        for (const size of sizes) {
          chunks.push(encoded.subarray(at, at + size));
          at = Math.min(at + size, encoded.length);
        }
        chunks.push(encoded.subarray(at));
        const result = collect(chunks, head, tail);
        expect(result).toEqual(collect([all], head, tail));
        expect(result.bytes).toBe(encoded.length);
        expect(bytes(result.head) + result.gapBytes + bytes(result.tail)).toBe(encoded.length);
        expect(all.startsWith(result.head) && all.endsWith(result.tail)).toBe(true);
        expect(result.gapBytes === 0).toBe(encoded.length <= head + tail);
      }),
    );
  });

  it("holds no more than its limits, whatever comes and in whatever pieces", () => {
    const limits = { headBytes: 1000, tailBytes: 2000 };
    const [large, small] = [new OutputCollector(limits), new OutputCollector(limits)];
    const chunk = new Uint8Array(65_536).fill(0x61);
    for (let n = 0; n < 3200; n++) large.push(chunk);
    for (let n = 0; n < 300_000; n++) small.push("b");
    for (const [collector, bytes] of [
      [large, 209_715_200],
      [small, 300_000],
    ] as const) {
      const { head, tail, gapBytes } = collector.collected();
      expect([collector.bytes, head.length, tail.length, gapBytes]).toEqual([bytes, 1000, 2000, bytes - 3000]);
    }
  });

  it("reads eight-bit codes and broken characters in bytes", () => {
    const broken = Uint8Array.from([0x61, 0x9b, 0x33, 0x31, 0x6d, 0x62, 0xff, 0xf0, 0x9f, 0x99, 0x63, 0xc3, 0xa9]);
    expect(makeSafeOutput(collect([broken], 100, 100), 100)).toBe("ab\ufffd\ufffdc\u00e9");
  });
});
