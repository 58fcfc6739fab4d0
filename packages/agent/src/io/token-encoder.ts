/**
 * Text to ids, as it stands inside a conversation: behind a special token, so that tokenizers which put a space before the first
 * word of a text do it here only where they also would in the middle of a prompt.
 *
 * Invariant: a special token's id comes only from the template's own text. Content is guarded before the template sees it, and a
 * guarded spelling is encoded as the plain characters it is.
 */
import { Tokenizer as Encoder } from "@huggingface/tokenizers";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ModelFiles } from "./model-files.ts";

/** Half a surrogate pair: no well-formed text holds one, so content can't write it. */
const guard = "\ud800";
const guards = /\ud800(?![\udc00-\udfff])/g;
/** Stands for whatever was before the text; two, for one is the first half of some real characters. */
const anchor = guard + guard;

interface Special {
  readonly id: number;
  readonly content: string;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

export class TokenEncoder {
  /** Knows every token. */
  readonly full: Encoder;
  /** Knows no special token, but one that stands for whatever was before the text. */
  readonly #plain: Encoder;
  readonly #specials: ReadonlyMap<string, Special>;
  readonly #specialIds: ReadonlySet<number>;
  /** Where any special token's text begins. */
  readonly #spelled: RegExp | null;
  readonly #written: RegExp | null;
  /** A unigram vocabulary that writes unknown characters as bytes, which the library does for BPE alone. */
  readonly #fallsBack: boolean;

  constructor({ tokenizer, config }: Pick<ModelFiles, "tokenizer" | "config">) {
    this.full = new Encoder(tokenizer, config);
    const before = { id: this.full.model?.vocab.length ?? 0, content: anchor, special: true, normalized: false };
    const ordinary = tokenizer.added_tokens.filter((token) => !token.special);
    const words = { type: "BPE", vocab: {}, merges: [] };
    this.#plain = new Encoder(
      { ...tokenizer, model: words, added_tokens: [...ordinary, before] },
      { ...config, additional_special_tokens: [] },
    );
    // The vocabulary is large: both share one.
    this.#plain.model = this.full.model;
    this.#fallsBack = tokenizer.model.type === "Unigram" && tokenizer.model.byte_fallback === true;
    // Unknown characters in a row must stay apart until they are written as bytes.
    if (this.#fallsBack && this.full.model !== null) this.full.model.fuse_unk = false;
    const specials = tokenizer.added_tokens.filter(({ special, content }) => special && content !== "");
    this.#specials = new Map(
      specials.map(({ id, content, lstrip, rstrip }) => [
        content,
        { id, content, lstrip: lstrip === true, rstrip: rstrip === true },
      ]),
    );
    // The unknown token is what content becomes that no other token can write.
    const unknown = this.full.model?.unk_token_id;
    this.#specialIds = new Set(specials.map(({ id }) => id).filter((id) => id !== unknown));
    const any = [...this.#specials.keys()]
      .sort((a, b) => b.length - a.length)
      .map((content) => content.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join("|");
    this.#spelled = any === "" ? null : new RegExp(`(?=${any})`, "g");
    this.#written = any === "" ? null : new RegExp(`(?<!${guard})(?:${any})`, "g");
  }

  /** Content as it may be given to a template. */
  guarded(content: string): string {
    const sound = wellFormed(content);
    return this.#spelled === null ? sound : sound.replace(this.#spelled, guard);
  }

  /** What a template wrote around guarded content. */
  encodeRendered(text: string): number[] {
    if (text === "") return [];
    if (text.search(guards) === -1 || this.#written === null) return this.#idsOf(this.full, text);
    const ids: number[] = [];
    let from = 0;
    let before: Special | undefined;
    for (const { 0: content, index } of text.matchAll(this.#written)) {
      const special = this.#specials.get(content);
      if (special === undefined) continue;
      ids.push(...this.#stretch(text.slice(from, index), before, special), special.id);
      before = special;
      from = index + content.length;
    }
    ids.push(...this.#stretch(text.slice(from), before, undefined));
    return ids;
  }

  /** Text between two special tokens, which may take its white space. */
  #stretch(text: string, before: Special | undefined, after: Special | undefined): number[] {
    const left = before?.rstrip ? text.trimStart() : text;
    const cut = after?.lstrip ? left.trimEnd() : left;
    const content = cut.replace(guards, "");
    // At the very start nothing is before the text.
    return before === undefined ? this.#plainIds(content, "") : this.encodeContent(content);
  }

  /** Text that is all content. */
  encodeContent(text: string): number[] {
    return this.#plainIds(wellFormed(text), anchor);
  }

  #plainIds(text: string, start: string): number[] {
    if (text === "") return [];
    const ids = this.#idsOf(this.#plain, start + text);
    const content = start === "" ? ids : ids.slice(1);
    // A vocabulary may hold a special token's text as a word of its own.
    if (!content.some((id) => this.#specialIds.has(id))) return content;
    return content.flatMap((id) => (this.#specialIds.has(id) ? this.#letters(id) : [id]));
  }

  #letters(id: number): number[] {
    const letters = [...(this.full.id_to_token(id) ?? "")];
    return letters.flatMap((letter) => this.#idsOf(this.#plain, anchor + letter).slice(1));
  }

  #bytesFor(id: number, token: string): number[] {
    const { model } = this.full;
    if (id !== model?.unk_token_id || token === model.unk_token) return [id];
    const bytes = [...new TextEncoder().encode(token)].map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
    const known = bytes.flatMap((byte) => this.full.token_to_id(`<0x${byte}>`) ?? []);
    return known.length === bytes.length ? known : [id];
  }

  /** @throws BoundaryError for text that the vocabulary can't write */
  #idsOf(encoder: Encoder, text: string): number[] {
    const encoded = encoder.encode(text, { add_special_tokens: false });
    const ids = this.#fallsBack
      ? encoded.ids.flatMap((id, at) => this.#bytesFor(id, encoded.tokens[at] ?? ""))
      : encoded.ids;
    if (ids.some((id) => id === undefined))
      throw new BoundaryError(
        "infrastructure",
        "model_folder",
        "the tokenizer has no token for some text, and no unknown token",
      );
    return ids;
  }
}

/** Text without half surrogates, which are no characters. */
const wellFormed = (text: string): string =>
  /\p{Surrogate}/u.test(text) ? text.replace(/\p{Surrogate}/gu, "\ufffd") : text;
