/**
 * An endpoint as the operator lists it. Keys live here and in memory only: configs, events, logs and errors know endpoints by
 * name or address.
 */
import { z } from "zod";

export const endpointKinds = ["gpu-worker", "tinker", "openai-completions", "vllm-generate", "openai-chat"] as const;
export type EndpointKind = (typeof endpointKinds)[number];

/** Fields that some servers answer with 400. */
export const omissibleFields = ["seed", "temperature", "top_p", "stream_options"] as const;

const HttpUrl = z.url({ protocol: /^https?$/ });
const Name = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,59}$/i, "letters, digits, dot, dash and underscore");
const VariableName = z.string().regex(/^[A-Z_][A-Z0-9_]*$/i);

export const EndpointFile = z.strictObject({
  name: Name,
  kind: z.enum(endpointKinds),
  /** Several are taken in turn by rollout; `/v1` at the end may be given or left out. */
  urls: z.array(HttpUrl).min(1).max(64),
  keys: z.array(z.string().min(1)).max(64).default([]),
  /** Names of environment variables that hold a key each. */
  keyEnv: z.union([VariableName, z.array(VariableName)]).default([]),
  /** Answers questions of verifiers. Chat endpoints only. */
  judge: z.boolean().default(false),
  /** What the server calls the model; null = the run's model name. */
  model: z.string().min(1).nullable().default(null),
  /** Ask for a stream: the default of chat. A server that dies shows at once, and idle limits on the way do not strike. */
  stream: z.boolean().nullable().default(null),
  /** What an assistant turn without content says. Servers disagree. */
  emptyContent: z.enum(["null", "empty"]).default("null"),
  /** Field that carries earlier thinking back to the server; null = it is not sent. */
  reasoningField: z.enum(["reasoning_content", "reasoning"]).nullable().default(null),
  maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).default("max_tokens"),
  /** Chat: what this server refuses to be told. */
  omitFields: z.array(z.enum(omissibleFields)).default([]),
  /** Chat: sent along with every request, such as a gateway's routing or `chat_template_kwargs`. */
  extraBody: z.record(z.string().min(1), z.json()).default({}),
  maxTries: z.int().min(1).max(100).default(8),
  /** One try, milliseconds. */
  tryTimeoutMs: z.int().min(1).default(600_000),
  /** All tries and pauses of one request, milliseconds. */
  totalTimeoutMs: z.int().min(1).default(900_000),
  /** Pause before the second try, milliseconds; doubles with each further one, to 30 s. */
  firstPauseMs: z.int().min(1).max(30_000).default(500),
  /** A server that asks to be left alone for longer is reported at once instead of waited for. */
  maxRetryAfterMs: z.int().min(0).default(60_000),
  maxConnections: z.int().min(1).max(65_536).default(1024),
});
export type EndpointFile = z.infer<typeof EndpointFile>;

/** An endpoint with its keys at hand. */
export interface Endpoint extends Omit<EndpointFile, "keys" | "keyEnv"> {
  readonly keys: readonly string[];
}

/** What a config's bare address stands for: no key, and the defaults of its kind. */
export const bareEndpoint = (kind: EndpointKind, url: string): Endpoint => {
  const { keyEnv: _, ...endpoint } = EndpointFile.parse({ name: "address", kind, urls: [url] });
  return endpoint;
};

/** `http://host/v1` for the OpenAI routes, whether the address ends in a version or not. */
export const versionedUrl = (url: string): string => {
  const bare = url.replace(/\/+$/, "");
  return /\/v\d+$/.test(bare) ? bare : `${bare}/v1`;
};
/** The server's root, for routes that stand beside `/v1`. */
export const rootUrl = (url: string): string => url.replace(/\/+$/, "").replace(/\/v\d+$/, "");
