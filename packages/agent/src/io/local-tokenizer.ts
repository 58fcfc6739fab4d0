/**
 * Tokenizer and chat template of a model folder.
 *
 * Invariant: only the template writes special tokens. Text that merely spells one (a tool's output, a user's words) is
 * encoded as plain text, so no content can open or close a turn.
 */
import { Template } from "@huggingface/jinja";
import { Tokenizer as Encoder } from "@huggingface/tokenizers";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ModelFiles } from "./model-files.ts";
import { showBytes, tokenBytes } from "./token-bytes.ts";

const replacement = "\ufffd";

export class LocalTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly stopTokens: readonly number[];
  /** Knows every token: for the template's own text and for decoding. */
  private readonly full: Encoder;
  /** Knows no special token: for content. */
  private readonly plain: Encoder;
  private readonly template: Template;
  private readonly specials: ReadonlyMap<number, string>;
  private readonly added: ReadonlySet<number>;
  private readonly variables: Readonly<Record<string, string>>;
  private readonly byteLevel: boolean;

  constructor(files: ModelFiles) {
    const { tokenizer, config } = files;
    this.full = new Encoder(tokenizer, config);
    const ordinary = tokenizer.added_tokens.filter((token) => !token.special);
    this.plain = new Encoder({ ...tokenizer, added_tokens: ordinary }, { ...config, additional_special_tokens: [] });
    this.template = new Template(files.chatTemplate);
    this.variables = files.templateVariables;
    this.specials = new Map(tokenizer.added_tokens.filter((t) => t.special).map((t) => [t.id, t.content]));
    this.added = new Set(tokenizer.added_tokens.map((token) => token.id));
    this.byteLevel = files.byteLevel;
    const largest = [...this.full.get_vocab().values()].reduce((max, id) => Math.max(max, id), -1);
    this.vocabSize = Math.max(files.vocabSize ?? 0, largest + 1);
    this.stopTokens = files.stopTokens;
  }

  encode(text: string): number[] {
    return ids(this.plain, text);
  }

  decode(tokens: readonly number[], options: { readonly skipSpecial?: boolean } = {}): string {
    const skip = options.skipSpecial ?? false;
    const kept = skip ? tokens.filter((token) => !this.specials.has(token)) : tokens;
    let text = "";
    let run: number[] = [];
    const flush = () => {
      if (run.length > 0) text += this.full.decode(run, { clean_up_tokenization_spaces: false });
      run = [];
    };
    for (const token of kept) {
      // A padded vocabulary has ids without a token; the policy may sample them.
      if (this.full.id_to_token(token) !== undefined) run.push(token);
      else {
        flush();
        text += replacement;
      }
    }
    flush();
    return text;
  }

  tokenTexts(tokens: readonly number[]): string[] {
    return tokens.map((id) => {
      const token = this.full.id_to_token(id);
      if (token === undefined) return replacement;
      if (this.added.has(id)) return token;
      const bytes = this.byteLevel ? tokenBytes(token) : null;
      return bytes === null ? this.full.decode([id], { clean_up_tokenization_spaces: false }) : showBytes(bytes);
    });
  }

  render(messages: readonly ChatMessage[], options: { readonly generationPrompt: boolean }): number[] {
    const spelled = this.spelledSpecials(messages);
    const mark = spelled.length > 0 ? unusedMark(messages) : "";
    const text = this.template.render({
      ...this.variables,
      messages: messages.map(({ role, content }) => ({ role, content: markAll(content, spelled, mark) })),
      add_generation_prompt: options.generationPrompt,
    });
    if (mark === "") return ids(this.full, text);
    // Marked places alternate with the rest: odd parts are numbers of spelled-out special tokens.
    return text
      .split(mark)
      .flatMap((part, i) => (i % 2 === 0 ? ids(this.full, part) : ids(this.plain, spelled[Number(part)] ?? "")));
  }

  /** Special tokens that some content spells out, longest first. */
  private spelledSpecials(messages: readonly ChatMessage[]): string[] {
    return [...this.specials.values()]
      .filter((special) => special !== "" && messages.some(({ content }) => content.includes(special)))
      .sort((a, b) => b.length - a.length);
  }
}

const ids = (encoder: Encoder, text: string): number[] =>
  text === "" ? [] : encoder.encode(text, { add_special_tokens: false }).ids;

/** A string of private-use characters that no message holds. */
function unusedMark(messages: readonly ChatMessage[]): string {
  let mark = "\ue000";
  while (messages.some(({ content }) => content.includes(mark))) mark += "\ue001";
  return mark;
}

function markAll(content: string, spelled: readonly string[], mark: string): string {
  let parts = [content];
  spelled.forEach((special, index) => {
    parts = parts.flatMap((part, i) =>
      i % 2 === 1 ? [part] : part.split(special).flatMap((piece, n) => (n === 0 ? [piece] : [`${index}`, piece])),
    );
  });
  return parts.join(mark);
}
