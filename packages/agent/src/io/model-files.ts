/** The files of a local model folder that say how it writes text, read and parsed once. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";

const AddedToken = z.looseObject({
  id: z.int().min(0),
  content: z.string(),
  special: z.boolean().default(false),
  lstrip: z.boolean().nullish(),
  rstrip: z.boolean().nullish(),
});
const TokenizerFile = z.looseObject({
  added_tokens: z.array(AddedToken).default([]),
  decoder: z.looseObject({ type: z.string() }).nullish(),
  model: z.looseObject({ type: z.string().optional() }),
});
/** A token by its text, or an object around it. */
const TokenName = z
  .union([z.string(), z.looseObject({ content: z.string() })])
  .nullish()
  .transform((token) => (typeof token === "object" ? (token?.content ?? null) : (token ?? null)));
const TokenizerConfigFile = z.looseObject({
  bos_token: TokenName,
  eos_token: TokenName,
  pad_token: TokenName,
  unk_token: TokenName,
  chat_template: z
    .union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))])
    .nullish()
    .transform((templates) =>
      Array.isArray(templates) ? templates.find(({ name }) => name === "default")?.template : templates,
    ),
});
const EndIds = z.union([z.int().transform((id) => [id]), z.array(z.int())]).nullish();
const ModelConfigFile = z.looseObject({ eos_token_id: EndIds, vocab_size: z.int().nullish() });

export interface ModelFiles {
  readonly tokenizer: z.infer<typeof TokenizerFile>;
  readonly config: z.infer<typeof TokenizerConfigFile>;
  readonly chatTemplate: string;
  readonly templateVariables: Readonly<Record<string, string>>;
  readonly byteLevel: boolean;
  readonly vocabSize: number | null;
  /** The tokenizer's own end token first. */
  readonly stopTokens: readonly number[];
}

/**
 * @param template stands in for the folder's own chat template
 * @throws BoundaryError("infrastructure") that names the file which is missing or wrong
 */
export async function readModelFiles(folder: string, template?: string): Promise<ModelFiles> {
  const tokenizer = await readJson(folder, "tokenizer.json", TokenizerFile);
  if (tokenizer === null) throw broken("tokenizer.json", "is missing");
  const config =
    (await readJson(folder, "tokenizer_config.json", TokenizerConfigFile)) ?? TokenizerConfigFile.parse({});
  const model = (await readJson(folder, "config.json", ModelConfigFile)) ?? {};
  const generation = (await readJson(folder, "generation_config.json", ModelConfigFile)) ?? {};
  const own = template ?? (await readText(folder, "chat_template.jinja"));
  const chatTemplate = own ?? config.chat_template ?? null;
  if (chatTemplate === null)
    throw broken("chat_template.jinja", "is missing, and tokenizer_config.json has no chat_template");
  const named = tokenizer.added_tokens.filter((token) => token.content === config.eos_token).map((token) => token.id);
  const stopTokens = [...new Set([...named, ...(generation.eos_token_id ?? []), ...(model.eos_token_id ?? [])])];
  if (stopTokens.length === 0) throw broken("tokenizer_config.json", "names no eos_token: no turn could ever end");
  return {
    tokenizer,
    config,
    chatTemplate,
    templateVariables: tokenNames(config),
    byteLevel: JSON.stringify(tokenizer.decoder ?? null).includes('"ByteLevel"'),
    vocabSize: model.vocab_size ?? null,
    stopTokens,
  };
}

/** Templates always get the first two; the others only where the model has them. */
function tokenNames(config: z.infer<typeof TokenizerConfigFile>): Record<string, string> {
  const { bos_token: bos, eos_token: eos, pad_token: pad, unk_token: unk } = config;
  return {
    bos_token: bos ?? "",
    eos_token: eos ?? "",
    ...(pad === null ? {} : { pad_token: pad }),
    ...(unk === null ? {} : { unk_token: unk }),
  };
}

const broken = (file: string, message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("infrastructure", "model_folder", `the model folder's ${file} ${message}`, { cause });

async function readText(folder: string, file: string): Promise<string | null> {
  try {
    return await readFile(join(folder, file), "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return null;
    throw broken(file, "could not be read", cause);
  }
}

async function readJson<T>(folder: string, file: string, schema: z.ZodType<T>): Promise<T | null> {
  const text = await readText(folder, file);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw broken(file, "is not what a tokenizer needs", cause);
  }
}
