/**
 * What a served checkpoint takes and gives: the parts of OpenAI's `/v1/completions` and `/v1/chat/completions` that it honours, and
 * the token ids that vLLM adds to them. A setting that it can't honour is refused, never ignored.
 */
import { z } from "zod";

const maxStops = 16;
/** Of a prompt, or of all messages together: they become tokens in one go, while nobody else is served. */
const maxPromptCharacters = 4_000_000;
const sampling = {
  /** Any name: there is one model behind a key. */
  model: z.string().max(300).optional(),
  n: z.int().min(1).max(16).default(1),
  temperature: z.number().min(0).max(2).default(1),
  top_p: z.number().gt(0).max(1).default(1),
  /** vLLM's; −1 and 0 = off. */
  top_k: z.int().min(-1).max(1_000_000).default(-1),
  seed: z.int().nullish(),
  /** Texts, or beside them ids under `stop_token_ids`, not both. */
  stop: z.union([z.string().min(1).max(200), z.array(z.string().min(1).max(200)).max(maxStops)]).nullish(),
  stop_token_ids: z.array(z.int().min(0)).max(64).nullish(),
  /** Special tokens in the text; ids always have them. */
  skip_special_tokens: z.boolean().default(true),
  /** Ids of prompt and answer beside the text. */
  return_token_ids: z.boolean().default(false),
  stream: z.boolean().default(false),
  stream_options: z.object({ include_usage: z.boolean().default(false) }).nullish(),
  /** Who asks: neither read nor kept. */
  user: z.string().max(300).optional(),
};

export const CompletionsAsk = z.strictObject({
  ...sampling,
  prompt: z.union([z.string().max(maxPromptCharacters), z.array(z.int().min(0)).max(1_048_576)]),
  max_tokens: z.int().min(1).max(131_072).default(256),
  /** 0 or 1: the sampled tokens' own logprobs; there are none of others. Null = none. */
  logprobs: z.int().min(0).max(1, "more than the sampled token's own are not given: ask for 1").nullish(),
});
export type CompletionsAsk = z.infer<typeof CompletionsAsk>;

const Text = z.union([
  z.string(),
  z
    .array(z.strictObject({ type: z.literal("text"), text: z.string() }))
    .transform((parts) => parts.map(({ text }) => text).join("")),
]);
export const ChatAsk = z.strictObject({
  ...sampling,
  messages: z
    .array(z.strictObject({ role: z.enum(["system", "user", "assistant"]), content: Text }))
    .min(1)
    .max(10_000)
    .refine((messages) => messages.reduce((sum, { content }) => sum + content.length, 0) <= maxPromptCharacters, {
      message: `may have at most ${maxPromptCharacters} characters together`,
    }),
  max_tokens: z.int().min(1).max(131_072).optional(),
  /** The newer name of `max_tokens`. */
  max_completion_tokens: z.int().min(1).max(131_072).optional(),
  logprobs: z.boolean().nullish(),
});
export type ChatAsk = z.infer<typeof ChatAsk>;
