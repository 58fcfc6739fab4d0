/** Tokenizers for decoding only, one per model folder, loaded when first asked for. */
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { resolveModel } from "@rolldeck/agent/io/resolve-model";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";

/**
 * Shows ids in place of text: the tokenizer is not on this machine (any more), or can't be read. A page that shows what is
 * stored is worth more than one that fails.
 */
export const idTokenizer: Tokenizer = {
  vocabSize: 0,
  stopTokens: [],
  encode: () => {
    throw new RangeError("this model's tokenizer is not here");
  },
  decode: (tokens) => tokens.map((id) => `⟨${id}⟩`).join(""),
  tokenTexts: (tokens) => tokens.map((id) => `⟨${id}⟩`),
  render: () => {
    throw new RangeError("this model's tokenizer is not here");
  },
};

export function createTokenizers(
  modelRoots: readonly string[],
  onError: (model: string, error: unknown) => void,
): (model: string) => Promise<Tokenizer> {
  const loaded = new Map<string, Promise<Tokenizer>>();
  return async (model) => {
    try {
      // Nothing is rendered here: a folder without a chat template of its own can be read too.
      const folder = resolveModel(model, modelRoots);
      const loading = loaded.get(folder) ?? loadTokenizer(folder, { template: "" });
      loaded.set(folder, loading);
      // A failed load is not kept: the folder may be mended while the server runs.
      loading.catch(() => loaded.delete(folder));
      return await loading;
    } catch (error) {
      onError(model, error);
      return idTokenizer;
    }
  };
}
