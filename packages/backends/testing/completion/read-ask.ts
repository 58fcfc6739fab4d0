/**
 * A request of one of the three wires, read without touching the prompt: its ids are counted as bytes and parsed only when the
 * script asks for them, so that the server's own cost does not grow with what a test's clients send.
 */
import type { IncomingMessage } from "node:http";

export type CompletionPath = "completions" | "generate" | "chat";

export interface CompletionAsk {
  readonly path: CompletionPath;
  /** Place of this request among all of its affinity key's, from 0. */
  readonly turn: number;
  /** `x-rolldeck-affinity`, "" when the client sent none. */
  readonly affinityKey: string;
  readonly headers: IncomingMessage["headers"];
  /** Number of prompt ids; of messages for chat. */
  readonly promptLength: number;
  /** The prompt's ids; parsed when called. Empty for chat. */
  promptTokens(): number[];
  /** The JSON array of the prompt's ids as it came. */
  readonly promptJson: Buffer;
  /** Everything but the prompt's ids. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly maxTokens: number;
  readonly stream: boolean;
}

const paths: Readonly<Record<string, CompletionPath>> = {
  "/v1/completions": "completions",
  "/inference/v1/generate": "generate",
  "/v1/chat/completions": "chat",
};
export const completionPath = (path: string): CompletionPath | undefined =>
  Object.hasOwn(paths, path) ? paths[path] : undefined;

/** A blank may stand before the ids, as some writers of JSON have it. */
const promptKeys: Readonly<Record<CompletionPath, string | null>> = {
  completions: '"prompt":',
  generate: '"token_ids":',
  chat: null,
};
const none = Buffer.from("[]");
const comma = ",".charCodeAt(0);
const blank = " ".charCodeAt(0);
const bracket = "[".charCodeAt(0);

/** @throws SyntaxError for a body that is not a JSON object */
export function readAsk(
  path: CompletionPath,
  request: IncomingMessage,
  bytes: Buffer,
  turnOf: (affinityKey: string) => number,
): CompletionAsk {
  const { promptJson, rest } = withoutPrompt(path, bytes);
  const body: unknown = JSON.parse(rest);
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new SyntaxError("not an object");
  const fields = body as Record<string, unknown>;
  const affinityKey = String(request.headers["x-rolldeck-affinity"] ?? "");
  const sampling = (path === "generate" ? fields.sampling_params : fields) as Record<string, unknown> | undefined;
  return {
    path,
    turn: turnOf(affinityKey),
    affinityKey,
    headers: request.headers,
    promptLength: path === "chat" ? lengthOf(fields.messages) : idsIn(promptJson),
    promptTokens: () => JSON.parse(promptJson.toString()),
    promptJson,
    body: fields,
    maxTokens: Number(sampling?.max_tokens ?? fields.max_completion_tokens ?? 16),
    stream: fields.stream === true,
  };
}

function withoutPrompt(path: CompletionPath, bytes: Buffer): { promptJson: Buffer; rest: string } {
  const key = promptKeys[path];
  const at = key === null ? -1 : bytes.indexOf(key);
  if (key === null || at < 0) return { promptJson: none, rest: bytes.toString() };
  const start = bytes[at + key.length] === blank ? at + key.length + 1 : at + key.length;
  if (bytes[start] !== bracket) return { promptJson: none, rest: bytes.toString() };
  const end = bytes.indexOf("]", start) + 1;
  return {
    promptJson: bytes.subarray(start, end),
    rest: `${bytes.toString("utf8", 0, start)}[]${bytes.toString("utf8", end)}`,
  };
}

function idsIn(json: Buffer): number {
  if (json.length <= 2) return 0;
  let ids = 1;
  for (let at = json.indexOf(comma); at >= 0; at = json.indexOf(comma, at + 1)) ids++;
  return ids;
}

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);
