import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UnigramSegmenter } from "./unigram-segmenter.ts";

const pieces: [string, number][] = [
  ["a", -2],
  ["b", -3],
  ["ab", -2.5],
  ["ba", -4],
  ["aba", -9],
];
const scores = new Map(pieces);

/** Every way to write a word, with its score. */
function ways(word: string): { pieces: string[]; score: number }[] {
  if (word === "") return [{ pieces: [], score: 0 }];
  return [...scores].flatMap(([piece, score]) =>
    word.startsWith(piece)
      ? ways(word.slice(piece.length)).map((rest) => ({ pieces: [piece, ...rest.pieces], score: score + rest.score }))
      : [],
  );
}

describe("UnigramSegmenter", () => {
  it("finds the likeliest of all ways", () => {
    const segmenter = new UnigramSegmenter(pieces, false);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 9 }), (word) => {
        const found = segmenter.segment(word);
        expect(found.join("")).toBe(word);
        const score = found.reduce((sum, piece) => sum + (scores.get(piece) ?? Number.NaN), 0);
        expect(score).toBeCloseTo(Math.max(...ways(word).map((way) => way.score)), 9);
      }),
    );
  });
  it("keeps unknown characters in a row together, or writes their bytes where it has them all", () => {
    expect(new UnigramSegmenter(pieces, false).segment("aéüb")).toEqual(["a", "éü", "b"]);
    const bytes: [string, number][] = [..."éü"].flatMap((letter) =>
      [...new TextEncoder().encode(letter)].map((byte): [string, number] => [
        `<0x${byte.toString(16).toUpperCase()}>`,
        0,
      ]),
    );
    const segmenter = new UnigramSegmenter([...pieces, ...bytes], true);
    expect(segmenter.segment("aéü")).toEqual(["a", "<0xC3>", "<0xA9>", "<0xC3>", "<0xBC>"]);
    expect(segmenter.segment("a鍵")).toEqual(["a", "鍵"]);
    expect(segmenter.segment("")).toEqual([]);
  });
});
