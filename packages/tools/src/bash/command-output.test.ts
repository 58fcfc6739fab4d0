import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KeptEnds } from "./kept-ends.ts";
import { MarkedStream, type MarkFound } from "./marked-stream.ts";

/** A text's bytes in pieces, cut anywhere. */
function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.slice(from, places[index] ?? bytes.length));
}

describe("the kept ends of an output", () => {
  const keep = (bytes: Uint8Array, maxBytes: number, cuts: readonly number[] = []) => {
    const kept = new KeptEnds(maxBytes);
    for (const piece of pieces(bytes, cuts)) kept.push(piece);
    return { ...kept.text(), bytes: kept.bytes };
  };

  test("what fits is whole; of what does not, both ends and all numbers are right (faults 36 and 40)", () => {
    const given = fc.tuple(fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 64 }), fc.array(fc.nat()));
    fc.assert(
      fc.property(given, ([text, maxBytes, cuts]) => {
        const bytes = Buffer.from(text, "utf8");
        const kept = keep(bytes, maxBytes, cuts);
        expect(kept.bytes).toBe(bytes.length);
        if (bytes.length <= Math.floor(maxBytes / 2) * 2) {
          expect(kept).toMatchObject({ text: bytes.toString("utf8"), wholeBytes: null });
          return;
        }
        expect(kept.wholeBytes).toBe(bytes.length);
        expect(kept.text).not.toMatch(/\p{Surrogate}/u);
        const [head = "", tail = ""] = kept.text.split(/\n\[\.\.\. \d+ of \d+ bytes cut \.\.\.\]\n/);
        const cut = Number(/\[\.\.\. (\d+) of/.exec(kept.text)?.[1]);
        expect(Buffer.byteLength(head) + cut + Buffer.byteLength(tail)).toBe(bytes.length);
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test("memory is bounded, however small the pieces", () => {
    const kept = new KeptEnds(1000);
    for (let count = 0; count < 200_000; count += 1) kept.push(Uint8Array.of(65 + (count % 26)));
    const { text, wholeBytes } = kept.text();
    expect([text.length < 1100, wholeBytes]).toEqual([true, 200_000]);
  });
});

describe("the marks around an output", () => {
  const mark = "0123456789abcdef".repeat(2);
  const read = (bytes: Uint8Array, cuts: readonly number[]) => {
    const output: Uint8Array[] = [];
    const stream = new MarkedStream(mark, (chunk) => output.push(Uint8Array.from(chunk)));
    let found: MarkFound | null = null;
    for (const piece of pieces(bytes, cuts)) found ??= stream.push(piece);
    return { found, output: Buffer.concat(output) };
  };
  const near = fc.constantFrom("\n", "\x1e", mark, mark.slice(0, 9), ` ${mark} 0 1`, "\x1e0123", "+\n");
  const noise = fc.array(fc.oneof(near, fc.string()), { maxLength: 6 }).map((parts) => parts.join(""));
  const unmarked = noise.filter((text) => !text.includes(`\x1e${mark} `) && !text.includes(`\x1e${mark}+`));

  test("exactly what stands between them is the output, in whatever pieces it comes", () => {
    fc.assert(
      fc.property(unmarked, unmarked, fc.array(fc.nat(), { maxLength: 8 }), (before, text, cuts) => {
        const whole = `${before}\x1e${mark}+\n${text}\x1e${mark} 137 1 /a\\ b\n`;
        const { found, output } = read(Buffer.from(whole, "utf8"), cuts);
        expect(found).toEqual({ exitCode: 137, stateKept: true, folder: "/a b" });
        expect(output.toString("utf8")).toBe(Buffer.from(text, "utf8").toString("utf8"));
      }),
      { numRuns: 1000 },
    );
  });

  test("a mark that somebody else begins is output: it can't be grown without end", () => {
    const long = "x".repeat(100_000);
    const { found, output } = read(Buffer.from(`\x1e${mark}+\n\x1e${mark} ${long}`), [10_000, 50_000, 90_000]);
    expect(found).toBeNull();
    expect(output.length).toBeGreaterThan(80_000);
  });

  test("a line is handed on at once", () => {
    expect(read(Buffer.from(`\x1e${mark}+\nfirst\n`), []).output.toString()).toBe("first\n");
  });
});
