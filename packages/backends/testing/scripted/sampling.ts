/** What the scripted policy "samples": its text as bytes and the end token, with logprobs that depend on (seed, place) alone. */
import type { SampleBody } from "@rolldeck/contracts/wire/tinker";
import { Refusal } from "./refusal.ts";
import { decodeTokens, encodeBytes, endToken, vocabularySize } from "./vocabulary.ts";

export interface PolicyInput {
  /** The whole prompt as text, specials by name. */
  readonly prompt: string;
  readonly seed: number;
  /** Policy version that samples. */
  readonly version: number;
}
/** Text, or bytes that need not be UTF-8. */
export type Sampled = string | Uint8Array;
export type Policy = (input: PolicyInput) => Sampled | Promise<Sampled>;

/**
 * Follows the key chain with `get`, one key per turn, and answers the digit it finds. With `skill` below 1 a share of rollouts,
 * chosen by seed, answers the last symbol too early; the share shrinks by `gain` with each version.
 */
export function keyChainPolicy(options: { readonly skill?: number; readonly gain?: number } = {}): Policy {
  const { skill = 1, gain = 0 } = options;
  return ({ prompt, seed, version }) => {
    const results = [...prompt.matchAll(/<\|tool\|>(.)<\|end\|>/gs)].map((match) => match[1] ?? "");
    const seen = results.at(-1) ?? /find ([a-z])/.exec(prompt)?.[1] ?? "";
    const hasty = results.length > 0 && fraction(seed, results.length) > Math.min(1, skill + gain * version);
    return /[a-z]/.test(seen) && !hasty ? `[get(k="${seen}")]` : `[finish(answer="${seen}")]`;
  };
}

export async function sampleScripted(body: SampleBody, policy: Policy, version: number) {
  const prompt = body.prompt.chunks.flatMap((chunk) => chunk.tokens);
  if (prompt.length === 0) throw new Refusal("bad_input", "the prompt is empty", "prompt");
  const strange = prompt.find((token) => token >= vocabularySize);
  if (strange !== undefined) throw new Refusal("bad_input", `token ${strange} is not in the vocabulary`, "prompt");
  const { max_tokens: maxTokens, seed = 0 } = body.sampling_params;
  const sampled = await policy({ prompt: decodeTokens(prompt), seed, version });
  const whole = [...(typeof sampled === "string" ? encodeBytes(sampled) : sampled), endToken];
  const tokens = whole.slice(0, maxTokens);
  return {
    sequences: Array.from({ length: body.num_samples }, () => ({
      stop_reason: tokens.length === whole.length ? "stop" : "length",
      tokens,
      logprobs: tokens.map((_, at) => -2 * fraction(seed, prompt.length + at)),
    })),
    weight_version: version,
    prompt_cache_hit_tokens: 0,
  };
}

/** A number in [0, 1) that depends on both arguments alone. */
export function fraction(seed: number, place: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(place + 1, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}
