import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { LocalTokenizer } from "./local-tokenizer.ts";
import { readModelFiles } from "./model-files.ts";

/**
 * Loads the tokenizer and chat template of a local model folder; no network.
 * @throws BoundaryError("infrastructure") that names the file which is missing or wrong
 */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const files = await readModelFiles(folder);
  try {
    return new LocalTokenizer(files);
  } catch (cause) {
    throw new BoundaryError("infrastructure", "model_folder", "the tokenizer or its chat template can't be built", {
      cause,
    });
  }
}
