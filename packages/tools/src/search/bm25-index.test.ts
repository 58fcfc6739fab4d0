import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Bm25Builder, type Bm25Index, bm25, type Hit, maxQueryTerms } from "./bm25-index.ts";
import { textTerms } from "./text-terms.ts";

function indexOf(texts: readonly string[]): Bm25Index {
  const builder = new Bm25Builder();
  for (const text of texts) builder.add(text);
  return builder.done();
}

/** The formula over plain lists, term by term and text by text. */
function scores(texts: readonly string[], query: string): number[] {
  const split = texts.map(textTerms);
  const mean = split.reduce((sum, terms) => sum + terms.length, 0) / texts.length;
  return split.map((terms) =>
    [...new Set(textTerms(query))].reduce((sum, term) => {
      const holding = split.filter((other) => other.includes(term)).length;
      const count = terms.filter((other) => other === term).length;
      if (count === 0) return sum;
      const idf = Math.log(1 + (texts.length - holding + 0.5) / (holding + 0.5));
      const norm = bm25.k1 * (1 - bm25.b + (bm25.b * terms.length) / mean);
      return sum + (idf * count * (bm25.k1 + 1)) / (count + norm);
    }, 0),
  );
}

const word = fc.constantFrom("a", "b", "c", "d", "e", "Ärger", "zu", "7");
const words = fc.array(word, { maxLength: 8 }).map((list) => list.join(" "));
const texts = fc.array(words, { minLength: 1, maxLength: 12 });

describe("search", () => {
  test("scores are those of the formula, best first, equal ones in the order of the texts", () => {
    fc.assert(
      fc.property(texts, words, fc.integer({ min: 1, max: 15 }), (list, query, limit) => {
        const hits = indexOf(list).search(query, limit);
        const expected = scores(list, query);
        expect(hits.length).toBe(Math.min(limit, expected.filter((score) => score > 0).length));
        for (const { position, score } of hits) expect(score).toBeCloseTo(expected[position] ?? Number.NaN, 9);
        const inOrder = (a: Hit, b: Hit) => a.score > b.score || (a.score === b.score && a.position < b.position);
        for (const [at, hit] of hits.entries())
          expect(hits.slice(at + 1).every((later) => inOrder(hit, later))).toBe(true);
        const worst = hits.at(-1)?.score ?? 0;
        const left = expected.filter((_, position) => !hits.some((hit) => hit.position === position));
        if (hits.length === limit) for (const score of left) expect(score).toBeLessThanOrEqual(worst + 1e-9);
      }),
    );
  });

  test("searching leaves nothing behind, and the order of the words changes nothing", () => {
    fc.assert(
      fc.property(texts, words, words, (list, query, other) => {
        const index = indexOf(list);
        const first = index.search(query, 5);
        index.search(other, 5);
        expect(index.search(query.split(" ").reverse().join(" "), 5)).toEqual(first);
      }),
    );
  });

  test("texts that score the same come in their own order, at any limit", () => {
    const index = indexOf(["x y", "y x", "z", "y z"]);
    expect(index.search("y", 10).map(({ position }) => position)).toEqual([0, 1, 3]);
    expect(index.search("y", 2).map(({ position }) => position)).toEqual([0, 1]);
  });

  test("rarer words count more, shorter texts win, repetition saturates", () => {
    const index = indexOf(["common rare", "common common common common", "common", "common filler filler filler"]);
    expect(index.search("rare common", 1)[0]?.position).toBe(0);
    const byLength = index.search("common", 4).map(({ position }) => position);
    expect(byLength.indexOf(2)).toBeLessThan(byLength.indexOf(3));
    // A word that every text holds still counts above nothing.
    expect(index.search("common", 4).every(({ score }) => score > 0)).toBe(true);
  });

  test("no texts, empty texts, unknown words and empty queries find nothing", () => {
    expect(indexOf([]).search("a", 3)).toEqual([]);
    expect(indexOf(["", " . "]).search("a", 3)).toEqual([]);
    expect(indexOf(["a"]).search("b", 3)).toEqual([]);
    expect(indexOf(["a"]).search("", 3)).toEqual([]);
    expect(indexOf(["constructor __proto__"]).search("toString", 3)).toEqual([]);
  });

  test("a query of very many words is looked up in part", () => {
    const many = Array.from({ length: maxQueryTerms + 10 }, (_, at) => `w${at}`);
    const hits = indexOf(many).search(many.join(" "), 1_000);
    expect(hits.length).toBe(maxQueryTerms);
  });
});

describe("terms", () => {
  test.each([
    ["Kx:mq, 12.5 %", ["kx", "mq", "12", "5"]],
    ["ﬁne Ｆｕｌｌ", ["fine", "full"]],
    ["ÉCOLE école e\u0301cole", ["école", "école", "école"]],
    ["東京タワー2024", ["東", "京", "タ", "ワ", "ー", "2024"]],
    ["हिन्दी भाषा", ["हिन्दी", "भाषा"]],
    ["서울 특별시", ["서울", "특별시"]],
    ["👩‍💻 \u0000 \ud800", []],
  ])("of %j", (text, expected) => {
    expect(textTerms(text)).toEqual(expected);
  });

  test("any text has terms without an error, and a term is found where it came from", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const terms = textTerms(text);
        const hits = indexOf([text]).search(text, 1);
        expect(hits.length).toBe(terms.length > 0 ? 1 : 0);
      }),
    );
  });
});
