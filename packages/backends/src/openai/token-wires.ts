/**
 * The two wires that take and give token ids. Pure: how a request is written around the prompt's bytes, and how an answer, or a
 * piece of a streamed one, is read.
 */
import type { SampleRequest } from "@rolldeck/contracts/ports/sampler";
import { z } from "zod";
import { rootUrl, versionedUrl } from "./endpoint.ts";

export interface WireRequest {
  readonly model: string;
  readonly stream: boolean;
}
/** What one JSON of an answer says; pieces of a stream add up. */
export interface AnswerPart {
  readonly tokens: readonly number[] | null;
  readonly logprobs: readonly (number | null)[] | null;
  readonly finishReason: string | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
}
export interface TokenWire {
  readonly address: (url: string) => string;
  /** Under the address. */
  readonly path: string;
  /** Body before and after the JSON array of prompt ids. */
  readonly body: (request: SampleRequest, wire: WireRequest) => { readonly before: string; readonly after: string };
  /** @throws ZodError */
  readonly read: (json: unknown) => AnswerPart;
}

const Usage = z
  .object({
    prompt_tokens: z.int().nullish(),
    completion_tokens: z.int().nullish(),
    prompt_tokens_details: z.object({ cached_tokens: z.int().nullish() }).nullish(),
  })
  .nullish();
const Ids = z.array(z.int().min(0)).nullish();
const Logprobs = z.array(z.number().nullable()).nullish();

const CompletionsAnswer = z.object({
  choices: z.array(
    z.object({
      token_ids: Ids,
      finish_reason: z.string().nullish(),
      logprobs: z.object({ tokens: z.array(z.string()).nullish(), token_logprobs: Logprobs }).nullish(),
    }),
  ),
  usage: Usage,
});
const GenerateAnswer = z.object({
  choices: z.array(
    z.object({
      token_ids: Ids,
      finish_reason: z.string().nullish(),
      logprobs: z.object({ content: z.array(z.object({ logprob: z.number().nullable() })).nullish() }).nullish(),
    }),
  ),
  usage: Usage,
});

const countsOf = (usage: z.infer<typeof Usage>) => ({
  promptTokens: usage?.prompt_tokens ?? null,
  completionTokens: usage?.completion_tokens ?? null,
  cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? null,
});

const sampling = (request: SampleRequest) => ({
  max_tokens: request.maxTokens,
  temperature: request.temperature,
  top_p: request.topP,
  // Left out where it is off: not every server takes −1 for none.
  ...(request.topK > 0 ? { top_k: request.topK } : {}),
  seed: request.seed,
  stop_token_ids: request.stopTokens,
  skip_special_tokens: false,
});
const streaming = (stream: boolean) =>
  stream ? { stream: true, stream_options: { include_usage: true } } : { stream: false };

const completions: TokenWire = {
  address: versionedUrl,
  path: "/completions",
  body: (request, { model, stream }) => ({
    before: `{"model":${JSON.stringify(model)},"prompt":`,
    after: `,${fields({
      ...sampling(request),
      // SGLang takes 0 for none.
      logprobs: 1,
      return_token_ids: true,
      ...streaming(stream),
    })}`,
  }),
  read: (json) => {
    const { choices, usage } = CompletionsAnswer.parse(json);
    const [choice] = choices;
    return {
      tokens: choice?.token_ids ?? idsInNames(choice?.logprobs?.tokens),
      logprobs: choice?.logprobs?.token_logprobs ?? null,
      finishReason: choice?.finish_reason ?? null,
      ...countsOf(usage),
    };
  },
};

/** `token_id:17`: how servers started with `--return-tokens-as-token-ids` name tokens. Null when any is named otherwise. */
function idsInNames(names: readonly string[] | null | undefined): number[] | null {
  if (!names || names.length === 0) return null;
  const ids = names.map((name) => /^token_id:(\d+)$/.exec(name)?.[1]);
  return ids.every((id) => id !== undefined) ? ids.map(Number) : null;
}

const generate: TokenWire = {
  address: rootUrl,
  path: "/inference/v1/generate",
  body: (request, { model, stream }) => ({
    before: `{"model":${JSON.stringify(model)},"token_ids":`,
    after: `,${fields({
      sampling_params: {
        ...sampling(request),
        // The sampled token's own, none beside it.
        logprobs: 0,
      },
      ...streaming(stream),
    })}`,
  }),
  read: (json) => {
    const { choices, usage } = GenerateAnswer.parse(json);
    const [choice] = choices;
    return {
      tokens: choice?.token_ids ?? null,
      logprobs: choice?.logprobs?.content?.map(({ logprob }) => logprob) ?? null,
      finishReason: choice?.finish_reason ?? null,
      ...countsOf(usage),
    };
  },
};

/** The inside of a JSON object and its closing brace. */
const fields = (object: Readonly<Record<string, unknown>>): string => JSON.stringify(object).slice(1);

export const tokenWires = {
  "openai-completions": completions,
  "vllm-generate": generate,
} as const satisfies Record<string, TokenWire>;

/** Pieces of a stream in order, as one answer. */
export function joinParts(parts: readonly AnswerPart[]): AnswerPart {
  const tokens = parts.flatMap((part) => part.tokens ?? []);
  const logprobs = parts.flatMap((part) => part.logprobs ?? []);
  const last = <K extends keyof AnswerPart>(key: K): AnswerPart[K] =>
    parts.reduce<AnswerPart[K]>((value, part) => part[key] ?? value, null as AnswerPart[K]);
  return {
    tokens: parts.some((part) => part.tokens !== null) ? tokens : null,
    logprobs: parts.some((part) => part.logprobs !== null) ? logprobs : null,
    finishReason: last("finishReason"),
    promptTokens: last("promptTokens"),
    completionTokens: last("completionTokens"),
    cachedTokens: last("cachedTokens"),
  };
}
