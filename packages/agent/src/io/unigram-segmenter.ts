/**
 * The likeliest way to write a word with the pieces of a unigram vocabulary. Equal ways are told apart exactly as Hugging Face's
 * `tokenizers` does it (sums from the left, the earlier start wins), so that ids are the same; the JavaScript library rounds
 * otherwise, and knows no fallback to bytes.
 */

/** Below the worst piece by this much, natural log, lies a character that no piece has. */
const unknownPenalty = 10;

/** Best way to reach a place: where its last piece starts, and whether that piece is in the vocabulary. */
interface Reached {
  readonly score: number;
  readonly start: number;
  readonly known: boolean;
}

export class UnigramSegmenter {
  readonly #scores: ReadonlyMap<string, number>;
  readonly #longest: number;
  readonly #unknownScore: number;
  readonly #bytes: boolean;

  /** @param vocabulary pieces with their log-probabilities @param byteFallback unknown characters are written as <0xNN> pieces */
  constructor(vocabulary: readonly (readonly [string, number])[], byteFallback: boolean) {
    this.#scores = new Map(vocabulary);
    this.#longest = vocabulary.reduce((longest, [piece]) => Math.max(longest, [...piece].length), 1);
    this.#unknownScore = vocabulary.reduce((least, [, score]) => Math.min(least, score), 0) - unknownPenalty;
    this.#bytes = byteFallback;
  }

  /** Pieces that make up the word; unknown characters in a row are one piece, or their bytes. */
  segment(word: string): string[] {
    const letters = [...word];
    const pieces: string[] = [];
    let unknown = "";
    const flush = () => {
      if (unknown !== "") pieces.push(...this.#written(unknown));
      unknown = "";
    };
    for (const { start, end, known } of this.#bestPath(letters)) {
      const piece = letters.slice(start, end).join("");
      if (known) flush();
      if (known) pieces.push(piece);
      else unknown += piece;
    }
    flush();
    return pieces;
  }

  #bestPath(letters: readonly string[]): { start: number; end: number; known: boolean }[] {
    const reached = new Array<Reached | undefined>(letters.length + 1);
    reached[0] = { score: 0, start: 0, known: true };
    for (let start = 0; start < letters.length; start++) this.#extend(letters, start, reached);
    const path: { start: number; end: number; known: boolean }[] = [];
    for (let end = letters.length; end > 0; ) {
      const { start, known } = reached[end] ?? { start: end - 1, known: false };
      path.push({ start, end, known });
      end = start;
    }
    return path.reverse();
  }

  #extend(letters: readonly string[], start: number, reached: (Reached | undefined)[]): void {
    const before = reached[start]?.score ?? 0;
    const offer = (end: number, score: number, known: boolean) => {
      const best = reached[end];
      if (best === undefined || before + score > best.score) reached[end] = { score: before + score, start, known };
    };
    let piece = "";
    let single = false;
    for (let end = start + 1; end <= Math.min(letters.length, start + this.#longest); end++) {
      piece += letters[end - 1] ?? "";
      const score = this.#scores.get(piece);
      if (score === undefined) continue;
      offer(end, score, true);
      single ||= end === start + 1;
    }
    if (!single) offer(start + 1, this.#unknownScore, false);
  }

  #written(unknown: string): string[] {
    if (!this.#bytes) return [unknown];
    const bytes = [...new TextEncoder().encode(unknown)].map(
      (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
    );
    return bytes.every((byte) => this.#scores.has(byte)) ? bytes : [unknown];
  }
}
