/** What a script may answer, and how each wire says it. */
import type { CompletionAsk } from "./read-ask.ts";

export interface ChatCall {
  readonly id?: string;
  readonly name: string;
  /** The text as the model wrote it, JSON or not. */
  readonly arguments: string;
}
/** A sample. What is left out is made to fit: a good server's answer. */
export interface SampledAnswer {
  /** Of the token wires. Default none. */
  readonly tokens?: readonly number[];
  /** Default −0.5 each; null leaves them out. */
  readonly logprobs?: readonly (number | null)[] | null;
  /** Default "stop"; "tool_calls" for a chat answer with calls. */
  readonly finishReason?: string | null;
  /** Numbers that the server claims; default the true ones. null leaves usage out. */
  readonly usage?: {
    readonly promptTokens?: number;
    readonly completionTokens?: number;
    readonly cachedTokens?: number;
  } | null;
  /** Prompt ids that the server says it saw; default those sent. null leaves them out. */
  readonly promptTokenIds?: readonly number[] | null;
  /** Leaves out `token_ids`: a server that hides them. */
  readonly hideTokenIds?: boolean;
  /** `logprobs.tokens` say `token_id:N`, as with return_tokens_as_token_ids. */
  readonly tokenIdStrings?: boolean;
  /** Of chat. Text of completions, which nobody should read. */
  readonly content?: string | null;
  readonly reasoning?: string | null;
  readonly calls?: readonly ChatCall[];
  /** Ids per streamed piece, characters for chat. Default 3. */
  readonly pieceLength?: number;
  /** Stream only: these chunks are sent as they are instead of those made from the rest. */
  readonly chunks?: readonly unknown[];
  /** Stream only: the connection dies after so many chunks. */
  readonly dieAfter?: number;
  /** Time before the answer, milliseconds. Default 0. */
  readonly delayMs?: number;
}
/** Anything else a server may do. */
export type BrokenAnswer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Never answers. */
  | { readonly hang: true }
  /** Cuts the connection without a word. */
  | { readonly reset: true }
  /** Head and part of a body, then the connection dies. */
  | { readonly partial: string };
export type CompletionAnswer = SampledAnswer | BrokenAnswer;

const model = "scripted";

const usageOf = (ask: CompletionAsk, answer: SampledAnswer): Record<string, unknown> | undefined => {
  if (answer.usage === null) return undefined;
  const prompt = answer.usage?.promptTokens ?? ask.promptLength;
  const completion = answer.usage?.completionTokens ?? answer.tokens?.length ?? 1;
  const cached = answer.usage?.cachedTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
  };
};

const finishOf = (answer: SampledAnswer): string | null =>
  answer.finishReason === undefined ? (answer.calls?.length ? "tool_calls" : "stop") : answer.finishReason;

/** The whole answer as JSON text. */
export function wholeAnswer(ask: CompletionAsk, answer: SampledAnswer): string {
  if (ask.path === "chat") return JSON.stringify(wholeChat(ask, answer));
  const choice = tokenChoice(ask, answer, answer.tokens ?? [], answer.logprobs, finishOf(answer));
  const usage = usageOf(ask, answer);
  const head = ask.path === "generate" ? { request_id: ask.body.request_id ?? "r" } : { id: "cmpl", model };
  const text = JSON.stringify({ ...head, choices: [choice], ...(usage ? { usage } : {}) });
  return withPrompt(ask, answer, text);
}

/** The prompt's ids are copied from the request, not written anew. */
function withPrompt(ask: CompletionAsk, answer: SampledAnswer, text: string): string {
  if (ask.path !== "completions" || answer.promptTokenIds === null || ask.body.return_token_ids !== true) return text;
  const ids =
    answer.promptTokenIds === undefined ? ask.promptJson.toString("latin1") : JSON.stringify(answer.promptTokenIds);
  return text.replace('"choices":[{', () => `"choices":[{"prompt_token_ids":${ids},`);
}

function tokenChoice(
  ask: CompletionAsk,
  answer: SampledAnswer,
  tokens: readonly number[],
  logprobs: readonly (number | null)[] | null | undefined,
  finish: string | null,
): Record<string, unknown> {
  const wanted = ask.path === "generate" || ask.body.return_token_ids === true;
  const values = logprobs === undefined ? tokens.map(() => -0.5) : logprobs;
  const names = values?.map((_, at) =>
    answer.tokenIdStrings ? `token_id:${tokens[at] ?? 0}` : `t${tokens[at] ?? "?"}`,
  );
  const said =
    values === null
      ? null
      : ask.path === "generate"
        ? { content: values.map((logprob, at) => ({ token: names?.[at], logprob, top_logprobs: [] })) }
        : { tokens: names, token_logprobs: values, top_logprobs: null };
  return {
    index: 0,
    ...(ask.path === "completions" ? { text: answer.content ?? "" } : {}),
    logprobs: said,
    finish_reason: finish,
    ...(wanted && !answer.hideTokenIds ? { token_ids: tokens } : {}),
  };
}

function wholeChat(ask: CompletionAsk, answer: SampledAnswer): unknown {
  const usage = usageOf(ask, answer);
  const message = {
    role: "assistant",
    content: answer.content ?? null,
    ...(answer.reasoning == null ? {} : { reasoning_content: answer.reasoning }),
    ...(answer.calls === undefined ? {} : { tool_calls: answer.calls.map(chatCall) }),
  };
  const choices = [{ index: 0, message, finish_reason: finishOf(answer) }];
  return { id: "chat", object: "chat.completion", model, choices, ...(usage ? { usage } : {}) };
}

const chatCall = ({ id, name, arguments: text }: ChatCall, index: number) => ({
  id: id ?? `call_${index}`,
  type: "function",
  function: { name, arguments: text },
});

/** The chunks of a streamed answer, `[DONE]` not among them. */
export function streamedAnswer(ask: CompletionAsk, answer: SampledAnswer): readonly unknown[] {
  if (answer.chunks !== undefined) return answer.chunks;
  const pieces = ask.path === "chat" ? chatPieces(answer) : tokenPieces(ask, answer);
  const usage = usageOf(ask, answer);
  const head = { id: "stream", object: ask.path === "chat" ? "chat.completion.chunk" : "text_completion", model };
  const chunks: unknown[] = pieces.map((choice) => ({ ...head, choices: [choice] }));
  return usage ? [...chunks, { ...head, choices: [], usage }] : chunks;
}

function tokenPieces(ask: CompletionAsk, answer: SampledAnswer): unknown[] {
  const tokens = answer.tokens ?? [];
  const size = answer.pieceLength ?? 3;
  const pieces: unknown[] = [];
  for (let at = 0; at < Math.max(tokens.length, 1); at += size) {
    const last = at + size >= tokens.length;
    const logprobs =
      answer.logprobs === undefined ? undefined : (answer.logprobs?.slice(at, last ? undefined : at + size) ?? null);
    const piece = tokenChoice(ask, answer, tokens.slice(at, at + size), logprobs, last ? finishOf(answer) : null);
    const prompt = ask.path === "completions" && at === 0 && answer.promptTokenIds !== null;
    pieces.push(prompt ? { ...piece, prompt_token_ids: answer.promptTokenIds ?? ask.promptTokens() } : piece);
  }
  return pieces;
}

function chatPieces(answer: SampledAnswer): unknown[] {
  const size = answer.pieceLength ?? 3;
  const deltas: unknown[] = [{ role: "assistant", content: "" }];
  for (const reasoning_content of split(answer.reasoning ?? "", size)) deltas.push({ reasoning_content });
  for (const content of split(answer.content ?? "", size)) deltas.push({ content });
  for (const [index, call] of (answer.calls ?? []).entries()) {
    const { id, type, function: made } = chatCall(call, index);
    deltas.push({ tool_calls: [{ index, id, type, function: { name: made.name, arguments: "" } }] });
    for (const text of split(made.arguments, size))
      deltas.push({ tool_calls: [{ index, function: { arguments: text } }] });
  }
  const choices: unknown[] = deltas.map((delta) => ({ index: 0, delta, finish_reason: null }));
  return [...choices, { index: 0, delta: {}, finish_reason: finishOf(answer) }];
}

function split(text: string, size: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}
