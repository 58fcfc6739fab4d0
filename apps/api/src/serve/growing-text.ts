/**
 * The text of tokens that come a few at a time. Invariant: what it gave, joined, is the text of all tokens; a character whose bytes
 * are not all there waits for the rest.
 */

/** Of bytes that no character has, so many tokens wait at the most. */
const longestWait = 16;
/** A character has at most four bytes, so as many tokens at the most end in the middle of one. */
const longestCharacter = 4;

export class GrowingText {
  readonly #decode: (tokens: readonly number[]) => string;
  /** Tokens whose text was given, as context for what follows, and after them those whose text was not. */
  #tokens: readonly number[] = [];
  #given = 0;

  constructor(decode: (tokens: readonly number[]) => string) {
    this.#decode = decode;
  }

  /** @returns what is new of the text; may be empty */
  push(tokens: readonly number[]): string {
    this.#tokens = [...this.#tokens, ...tokens];
    return this.#give(this.#whole());
  }

  /** @returns the rest, as it is */
  end(): string {
    return this.#give(this.#tokens.length);
  }

  /** How many tokens there are up to the end of a character. */
  #whole(): number {
    const all = this.#tokens.length;
    for (let end = all; end > Math.max(this.#given, all - longestCharacter); end--)
      if (!this.#decode(this.#tokens.slice(0, end)).endsWith("\u{fffd}")) return end;
    return all - this.#given > longestWait ? all : this.#given;
  }

  #give(end: number): string {
    if (end === this.#given) return "";
    const before = this.#decode(this.#tokens.slice(0, this.#given));
    const text = this.#decode(this.#tokens.slice(0, end));
    this.#tokens = this.#tokens.slice(this.#given);
    this.#given = end - this.#given;
    return text.slice(before.length);
  }
}
