/**
 * Ids to text. Invariants: never fails, bytes that are no UTF-8 become U+FFFD; a token reads the same wherever the list it is in
 * was cut, so the text of a sampled turn is what the turn holds, a leading space included.
 */
import type { Tokenizer as Encoder } from "@huggingface/tokenizers";
import type { ModelFiles } from "./model-files.ts";
import { showBytes, tokenBytes } from "./token-bytes.ts";

const replacement = "\ufffd";
/** A token text that no decoder changes: it stands before what is decoded, so that nothing counts as a text's beginning. */
const start = "\u0001";

export class TokenDecoder {
  readonly #full: Encoder;
  readonly #byteLevel: boolean;
  readonly #added: ReadonlyMap<number, string>;
  readonly #specials: ReadonlySet<number>;
  readonly #bytes = new Map<number, Uint8Array>();

  constructor(full: Encoder, { tokenizer, byteLevel }: Pick<ModelFiles, "tokenizer" | "byteLevel">) {
    this.#full = full;
    this.#byteLevel = byteLevel;
    this.#added = new Map(tokenizer.added_tokens.map(({ id, content }) => [id, content]));
    this.#specials = new Set(tokenizer.added_tokens.filter(({ special }) => special).map(({ id }) => id));
  }

  decode(tokens: readonly number[], skipSpecial: boolean): string {
    let text = "";
    let run: number[] = [];
    const flush = () => {
      if (run.length > 0) text += this.#byteLevel ? this.#bytesText(run) : this.#wordsText(run);
      run = [];
    };
    for (const id of tokens) {
      if (skipSpecial && this.#specials.has(id)) continue;
      const added = this.#added.get(id);
      // A padded vocabulary has ids without a token; the policy may sample them.
      if (added === undefined && this.#full.id_to_token(id) !== undefined) run.push(id);
      else {
        flush();
        text += added ?? replacement;
      }
    }
    flush();
    return text;
  }

  /** The exact bytes-as-text of one token. */
  tokenText(id: number): string {
    const token = this.#full.id_to_token(id);
    const added = this.#added.get(id);
    if (added !== undefined || token === undefined) return added ?? replacement;
    if (this.#byteLevel) return showBytes([...this.#bytesOf(id)]);
    const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    return byte === undefined ? this.#wordsText([id]) : showBytes([Number.parseInt(byte, 16)]);
  }

  #bytesText(ids: readonly number[]): string {
    const parts = ids.map((id) => this.#bytesOf(id));
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(whole);
  }

  #bytesOf(id: number): Uint8Array {
    const known = this.#bytes.get(id);
    if (known !== undefined) return known;
    const token = this.#full.id_to_token(id) ?? "";
    // A token with a character that stands for no byte is its own text.
    const bytes = Uint8Array.from(tokenBytes(token) ?? new TextEncoder().encode(token));
    this.#bytes.set(id, bytes);
    return bytes;
  }

  #wordsText(ids: readonly number[]): string {
    const tokens = ids.map((id) => this.#full.id_to_token(id) ?? replacement);
    const { decoder } = this.#full;
    if (decoder === null) return tokens.join("");
    const text = decoder.decode([start, ...tokens]);
    return text.startsWith(start) ? text.slice(start.length) : text;
  }
}
