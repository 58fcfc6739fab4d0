/** Tokenizers with chat templates, as runs use them, loaded when first asked for. */
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { readTemplate } from "@rolldeck/agent/io/named-templates";
import { resolveModel } from "@rolldeck/agent/io/resolve-model";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ServedEndpointParts } from "./served-endpoint.ts";

export function createChatTokenizers(roots: {
  readonly models: readonly string[];
  readonly templates: readonly string[];
}): ServedEndpointParts["tokenizer"] {
  const loaded = new Map<string, Promise<Tokenizer>>();
  return ({ model, chatTemplate, thinking }) => {
    const key = JSON.stringify([model, chatTemplate, thinking]);
    const known = loaded.get(key);
    if (known !== undefined) return known;
    const loading = load();
    loaded.set(key, loading);
    // A failed load is not kept: the folder may be mended while the server runs.
    loading.catch(() => loaded.delete(key));
    return loading;

    async function load(): Promise<Tokenizer> {
      const template = chatTemplate === null ? {} : { template: await readTemplate(chatTemplate, roots.templates) };
      return loadTokenizer(resolveModel(model, roots.models), { ...template, thinking });
    }
  };
}
