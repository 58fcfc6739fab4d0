/**
 * Tokenizer and chat template of a model folder.
 *
 * Invariant: only the template writes special tokens. Text that merely spells one (a tool's output, a user's words) is
 * encoded as plain text, so no content can open or close a turn.
 */
import type { ChatMessage, RenderOptions, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { ChatTemplate } from "./chat-template.ts";
import type { ModelFiles } from "./model-files.ts";
import { type TemplateSettings, templateVariables } from "./template-variables.ts";
import { TokenDecoder } from "./token-decoder.ts";
import { TokenEncoder } from "./token-encoder.ts";

export class LocalTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly stopTokens: readonly number[];
  readonly #encoder: TokenEncoder;
  readonly #decoder: TokenDecoder;
  readonly #template: ChatTemplate;
  readonly #settings: TemplateSettings;
  readonly #guarded: (text: string) => string;

  /** @param thinking told to the template; null = its own default */
  constructor(files: ModelFiles, thinking: boolean | null) {
    this.#encoder = new TokenEncoder(files);
    this.#decoder = new TokenDecoder(this.#encoder.full, files);
    this.#template = new ChatTemplate(files.chatTemplate);
    this.#settings = { thinking, tokens: files.templateVariables };
    this.#guarded = (text) => this.#encoder.guarded(text);
    this.vocabSize = Math.max(files.vocabSize ?? 0, this.#encoder.full.model?.vocab.length ?? 0);
    this.stopTokens = files.stopTokens;
  }

  encode(text: string): number[] {
    return this.#encoder.encodeContent(text);
  }

  decode(tokens: readonly number[], options: { readonly skipSpecial?: boolean } = {}): string {
    return this.#decoder.decode(tokens, options.skipSpecial ?? false);
  }

  tokenTexts(tokens: readonly number[]): string[] {
    return tokens.map((id) => this.#decoder.tokenText(id));
  }

  /** @throws BoundaryError("infrastructure", "chat_template") when the template refuses the conversation */
  render(messages: readonly ChatMessage[], options: RenderOptions): number[] {
    const variables = templateVariables(messages, options, this.#settings, this.#guarded);
    return this.#encoder.encodeRendered(this.#template.render(variables));
  }
}
