/**
 * Okapi BM25 over a fixed list of texts, with the non-negative idf that Lucene uses: ln(1 + (N − n + ½) / (n + ½)).
 *
 * Written here because it is small and libraries of this size do more than that (prefixes, fuzziness, fields) at several times
 * the memory: postings lie in typed arrays, 8 bytes each. Invariants: a document with a term of the query scores above 0, any
 * other is no hit; equal scores are in the order of the texts; the order of the query's words changes nothing. Pure.
 */
import { textTerms } from "./text-terms.ts";

/** Saturation of term counts and weight of the text's length: the customary values. */
export const bm25 = { k1: 1.2, b: 0.75 } as const;
/** Different terms of one query that are looked up; further ones are ignored, so that a query's cost is bounded. */
export const maxQueryTerms = 64;

export interface Hit {
  /** Position in the list of texts. */
  readonly position: number;
  /** Above 0; comparable within one index only. */
  readonly score: number;
}

/** Collects texts; `done` gives the index. Kept apart so that a large corpus can be added bit by bit. */
export class Bm25Builder {
  readonly #terms = new Map<string, number>();
  readonly #lengths = new GrowingInts();
  /** Term, count in the text: in the order of the texts, which `#ends` delimits. */
  readonly #entries = new GrowingInts();
  readonly #ends = new GrowingInts();

  add(text: string): void {
    const terms = textTerms(text);
    const counts = new Map<number, number>();
    for (const term of terms) {
      const id = this.#terms.get(term) ?? this.#terms.size;
      if (id === this.#terms.size) this.#terms.set(term, id);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    for (const [id, count] of counts) {
      this.#entries.push(id);
      this.#entries.push(count);
    }
    this.#lengths.push(terms.length);
    this.#ends.push(this.#entries.length);
  }

  /** The builder is spent afterwards. */
  done(): Bm25Index {
    return new Bm25Index(this.#terms, this.#lengths.taken(), groupByTerm(this.#terms.size, this.#entries, this.#ends));
  }
}

/** Postings of term t: `texts` and `counts` from `starts[t]` to `starts[t + 1]`, in the order of the texts. */
interface Postings {
  readonly starts: Uint32Array;
  readonly texts: Uint32Array;
  readonly counts: Uint32Array;
}

function groupByTerm(terms: number, entries: GrowingInts, ends: GrowingInts): Postings {
  const pairs = entries.taken();
  const starts = new Uint32Array(terms + 1);
  for (let at = 0; at < pairs.length; at += 2) starts[(pairs[at] ?? 0) + 1] = (starts[(pairs[at] ?? 0) + 1] ?? 0) + 1;
  for (let term = 0; term < terms; term++) starts[term + 1] = (starts[term + 1] ?? 0) + (starts[term] ?? 0);
  const next = starts.slice();
  const texts = new Uint32Array(pairs.length / 2);
  const counts = new Uint32Array(pairs.length / 2);
  let from = 0;
  for (const [text, end] of ends.taken().entries()) {
    for (let at = from; at < end; at += 2) {
      const term = pairs[at] ?? 0;
      const place = next[term] ?? 0;
      texts[place] = text;
      counts[place] = pairs[at + 1] ?? 0;
      next[term] = place + 1;
    }
    from = end;
  }
  return { starts, texts, counts };
}

export class Bm25Index {
  readonly #terms: ReadonlyMap<string, number>;
  readonly #postings: Postings;
  /** k1 · (1 − b + b · length / mean length) of each text. */
  readonly #norms: Float64Array;
  /** Scores of the search that is going on; all 0 between searches. */
  readonly #scores: Float64Array;

  constructor(terms: ReadonlyMap<string, number>, lengths: Uint32Array, postings: Postings) {
    const mean = Math.max(
      lengths.reduce((sum, length) => sum + length, 0) / Math.max(lengths.length, 1),
      Number.MIN_VALUE,
    );
    this.#terms = terms;
    this.#postings = postings;
    this.#norms = Float64Array.from(lengths, (length) => bm25.k1 * (1 - bm25.b + (bm25.b * length) / mean));
    this.#scores = new Float64Array(lengths.length);
  }

  get size(): number {
    return this.#norms.length;
  }

  /** The `limit` best, best first. */
  search(query: string, limit: number): Hit[] {
    const touched: number[] = [];
    for (const term of this.#known(query)) this.#score(term, touched);
    const best: Hit[] = [];
    for (const position of touched) {
      const score = this.#scores[position] ?? 0;
      this.#scores[position] = 0;
      const worst = best.length < limit ? undefined : best[limit - 1];
      // Most texts that share a common word are no match for the best: they cost a comparison.
      if (worst === undefined || score >= worst.score) keepBest(best, { position, score }, limit);
    }
    return best;
  }

  /** Ids in ascending order: sums of the same numbers in the same order are equal. */
  #known(query: string): number[] {
    const ids = new Set<number>();
    for (const term of textTerms(query)) {
      const id = this.#terms.get(term);
      if (id !== undefined) ids.add(id);
      if (ids.size === maxQueryTerms) break;
    }
    return [...ids].sort((a, b) => a - b);
  }

  #score(term: number, touched: number[]): void {
    const { starts, texts, counts } = this.#postings;
    const from = starts[term] ?? 0;
    const to = starts[term + 1] ?? 0;
    const idf = Math.log(1 + (this.size - (to - from) + 0.5) / (to - from + 0.5));
    for (let at = from; at < to; at++) {
      const position = texts[at] ?? 0;
      const count = counts[at] ?? 0;
      const before = this.#scores[position] ?? 0;
      if (before === 0) touched.push(position);
      this.#scores[position] = before + (idf * count * (bm25.k1 + 1)) / (count + (this.#norms[position] ?? 0));
    }
  }
}

/** Inserts in order: higher scores first, then earlier texts. */
function keepBest(best: Hit[], hit: Hit, limit: number): void {
  const comesAfter = (other: Hit): boolean =>
    other.score > hit.score || (other.score === hit.score && other.position < hit.position);
  let place = best.length;
  while (place > 0) {
    const other = best[place - 1];
    if (other === undefined || comesAfter(other)) break;
    place -= 1;
  }
  if (place >= limit) return;
  best.splice(place, 0, hit);
  if (best.length > limit) best.pop();
}

class GrowingInts {
  #values = new Uint32Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Uint32Array(Math.ceil(this.#length * 1.5));
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** What was pushed; the collector is empty afterwards. */
  taken(): Uint32Array {
    const values = this.#values.slice(0, this.#length);
    this.#values = new Uint32Array(0);
    this.#length = 0;
    return values;
  }
}
