/** A tool's output as the model gets it: safe, within the bytes and then the tokens of the run's caps, saying what was cut. */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { utf8Length } from "./cut-text.ts";
import { cutTokens } from "./cut-tokens.ts";
import { safeOutput } from "./make-safe-output.ts";
import type { RolloutSpec } from "./rollout.ts";

export interface LimitedOutput {
  readonly text: string;
  /** UTF-8 bytes of the whole output when `text` is a cut version; else null. */
  readonly wholeBytes: number | null;
  /** `text` is not what the tool gave, letter for letter. */
  readonly changed: boolean;
}

export interface OutputLimits {
  readonly agent: Pick<RolloutSpec["agent"], "maxOutputBytes" | "maxOutputTokens">;
  readonly tokenizer: Tokenizer;
}

export function limitOutput({ agent, tokenizer }: OutputLimits, output: string): LimitedOutput {
  const safe = safeOutput(output, agent.maxOutputBytes);
  const { text, wholeBytes } = safe;
  if (agent.maxOutputTokens === null) return safe;
  const fewer = fewerTokens(tokenizer, text, agent.maxOutputTokens);
  return fewer === text ? safe : { text: fewer, wholeBytes: wholeBytes ?? utf8Length(output), changed: true };
}

/** A UTF-16 unit is at most three bytes and a byte at most one token: most outputs need no encoding to be known short. */
function fewerTokens(tokenizer: Tokenizer, text: string, maxTokens: number): string {
  if (text.length * 3 <= maxTokens) return text;
  const tokens = tokenizer.encode(text);
  if (tokens.length <= maxTokens) return text;
  const notice = (cut: number) => tokenizer.encode(`\n[... ${cut} of ${tokens.length} tokens cut ...]\n`);
  // Text that is decoded and encoded again may take a few tokens more at its seams: then it is cut a little shorter.
  for (let limit = maxTokens; ; limit -= Math.max(1, Math.ceil(limit / 16))) {
    const starts = (index: number) => startsCharacter(tokenizer, tokens, index);
    const cut = tokenizer.decode(cutTokens(tokens, Math.max(1, limit), notice, starts).tokens);
    if (limit <= 1 || tokenizer.encode(cut).length <= maxTokens) return cut;
  }
}

/** Bytes of a character that are spread over tokens decode to U+FFFD where they are parted. */
const startsCharacter = (tokenizer: Tokenizer, tokens: readonly number[], index: number): boolean =>
  !tokenizer.decode(tokens.slice(index, index + 4)).startsWith("\ufffd");
