/** Every way a model may write its calls. Add one: a file in dialects/ and a line here. */
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import { codeBlocks } from "./dialects/code-blocks.ts";
import { hermes } from "./dialects/hermes.ts";
import { llamaJson } from "./dialects/llama-json.ts";
import { llamaPythonic } from "./dialects/llama-pythonic.ts";
import { mistral } from "./dialects/mistral.ts";
import { openai } from "./dialects/openai.ts";
import { pythonic } from "./dialects/pythonic.ts";
import { qwenXml } from "./dialects/qwen-xml.ts";
import { skyrl } from "./dialects/skyrl.ts";

export const dialects = {
  pythonic,
  hermes,
  "qwen-xml": qwenXml,
  "llama-json": llamaJson,
  "llama-pythonic": llamaPythonic,
  mistral,
  skyrl,
  "code-blocks": codeBlocks,
  openai,
} satisfies Record<string, Dialect>;
export type DialectName = keyof typeof dialects;
