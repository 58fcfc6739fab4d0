import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { LocalTokenizer } from "./local-tokenizer.ts";
import { readModelFiles } from "./model-files.ts";

export interface TokenizerOptions {
  /** Text of a chat template that stands in for the folder's own. */
  readonly template?: string;
  /** Told to the template; null = its own default. */
  readonly thinking?: boolean | null;
}

/**
 * Loads the tokenizer and chat template of a local model folder; no network.
 * @throws BoundaryError("infrastructure") that names the file which is missing or wrong
 */
export async function loadTokenizer(folder: string, options: TokenizerOptions = {}): Promise<Tokenizer> {
  const files = await readModelFiles(folder, options.template);
  try {
    return new LocalTokenizer(files, options.thinking ?? null);
  } catch (cause) {
    throw new BoundaryError("infrastructure", "model_folder", "the tokenizer or its chat template can't be built", {
      cause,
    });
  }
}
