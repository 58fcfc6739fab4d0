/**
 * Text to ids, as it stands inside a conversation: behind a special token, so that tokenizers which put a space before the first
 * word of a text do it here only where they also would in the middle of a prompt.
 *
 * Invariant: a special token's id comes only from the template's own text. Content is guarded before the template sees it, and a
 * guarded spelling is encoded as the plain characters it is.
 */
import { Tokenizer as Encoder } from "@huggingface/tokenizers";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import type { ModelFiles } from "./model-files.ts";
import { UnigramSegmenter } from "./unigram-segmenter.ts";

/** Half a surrogate pair: no well-formed text holds one, so content can't write it. */
const guard = "\ud800";
const guards = /\ud800(?![\udc00-\udfff])/g;
/** Stands for whatever was before the text; two, for one is the first half of some real characters. */
const anchor = guard + guard;

const Unigram = z.looseObject({
  type: z.literal("Unigram"),
  vocab: z.array(z.tuple([z.string(), z.number()])),
  byte_fallback: z.boolean().nullish(),
});

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

  constructor({ tokenizer: file, config }: Pick<ModelFiles, "tokenizer" | "config">) {
    const tokenizer = { ...file, pre_tokenizer: withWordSplits(file.pre_tokenizer) };
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
    const unigram = Unigram.safeParse(tokenizer.model).data;
    if (unigram !== undefined && this.full.model !== null) {
      const segmenter = new UnigramSegmenter(unigram.vocab, unigram.byte_fallback === true);
      this.full.model.encode = (words) => words.flatMap((word) => segmenter.segment(word));
    }
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
      .map(literal)
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

  /** @throws BoundaryError for text that the vocabulary can't write */
  #idsOf(encoder: Encoder, text: string): number[] {
    const { ids } = encoder.encode(text, { add_special_tokens: false });
    if (ids.some((id) => id === undefined))
      throw new BoundaryError(
        "infrastructure",
        "model_folder",
        "the tokenizer has no token for some text, and no unknown token",
      );
    return ids;
  }
}

interface PreTokenizer {
  readonly type: string;
  readonly [key: string]: unknown;
}
const isPreTokenizer = (value: unknown): value is PreTokenizer =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** Metaspace also splits before every space mark unless it is told not to; the library only writes the marks. */
function withWordSplits(step: unknown): unknown {
  if (!isPreTokenizer(step)) return step;
  if (step.type === "Sequence" && Array.isArray(step.pretokenizers))
    return { ...step, pretokenizers: step.pretokenizers.map(withWordSplits) };
  if (step.type !== "Metaspace" || step.split === false) return step;
  const mark = literal(typeof step.replacement === "string" ? step.replacement : "\u2581");
  const words = { type: "Split", pattern: { Regex: `${mark}[^${mark}]*` }, behavior: "Isolated", invert: false };
  return { type: "Sequence", pretokenizers: [step, words] };
}

/** The text as part of a regular expression. */
const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** Text without half surrogates, which are no characters. */
const wellFormed = (text: string): string =>
  /\p{Surrogate}/u.test(text) ? text.replace(/\p{Surrogate}/gu, "\ufffd") : text;
