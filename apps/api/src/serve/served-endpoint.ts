/**
 * Answers for served checkpoints as an OpenAI-compatible server: `/api/serve/<serving>/v1/…`. Invariants: a serving's own key opens it
 * and nothing else does, not even the owner's token; once it is stopped, what is at work for it ends; errors have OpenAI's shape; who
 * goes away cancels the sample; so many requests are at work at once, and what is beyond is refused before its body is read.
 */
import { Readable } from "node:stream";
import type { SamplePiece, StoredSample, StoredSampler } from "@rolldeck/backends/gpu-worker/stored-sampler";
import { problemTypes } from "@rolldeck/contracts/api/problems";
import { ServingId } from "@rolldeck/contracts/api/servings";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { ChatAsk, CompletionsAsk } from "@rolldeck/contracts/wire/completions";
import { newId } from "@rolldeck/db/new-id";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { findServed, type Served } from "@rolldeck/db/servings";
import type { Pool } from "pg";
import type { z } from "zod";
import { jsonReply, type Reply } from "../http/reply.ts";
import { fieldPath, ProblemError } from "../problems.ts";
import type { StoredPlaces } from "../services/stored-places.ts";
import { type Asked, chatAnswer, completionsAnswer } from "./completion-answers.ts";
import { CompletionChunks } from "./completion-chunks.ts";
import { OpenAiError } from "./openai-error.ts";
import { StoppedServings } from "./stopped-servings.ts";

export const servedPrefix = "/api/serve/";

export interface ServedRequest {
  readonly method: string;
  readonly path: string;
  /** Of `Authorization: Bearer`; null = none came. */
  readonly key: string | null;
  readonly body: () => Promise<Uint8Array>;
  readonly signal: AbortSignal;
}
export interface ServedEndpointParts {
  readonly pool: Pool;
  readonly samplers: Pick<StoredPlaces<Pick<StoredSampler, "sample" | "stream">>, "of">;
  /** With the chat template of the run. @throws for a model that is not on this machine */
  readonly tokenizer: (model: Pick<Served, "model" | "chatTemplate" | "thinking">) => Promise<Tokenizer>;
}

const maxKeyLength = 256;
/** Each may hold a long prompt, and a sample of the GPU worker that runs sample from too. */
export const mostAtWork = 64;

export class ServedEndpoint {
  readonly #parts: ServedEndpointParts;
  readonly #stopped: StoppedServings;
  #atWork = 0;

  constructor(parts: ServedEndpointParts) {
    this.#parts = parts;
    this.#stopped = new StoppedServings(parts.pool);
  }

  /** Never throws what the caller can do something about: that is an answer. */
  async answer(request: ServedRequest): Promise<Reply> {
    try {
      return await this.#answer(request);
    } catch (error) {
      // Nobody is left to hear it.
      if (request.signal.aborted) return new OpenAiError(503, "The request was given up.").reply();
      if (error instanceof OpenAiError) return error.reply();
      if (error instanceof ProblemError) return new OpenAiError(problemTypes[error.problem], error.message).reply();
      throw error;
    }
  }

  async #answer({ method, path, key, body, signal }: ServedRequest): Promise<Reply> {
    const [servingId = "", ...rest] = path.slice(servedPrefix.length).split("/");
    const served = await this.#served(servingId, key);
    const what = `${method} /${rest.join("/")}`;
    if (what === "GET /v1/models") return models(servingId);
    const asks = { "POST /v1/completions": CompletionsAsk, "POST /v1/chat/completions": ChatAsk } as const;
    if (what === "POST /v1/completions" || what === "POST /v1/chat/completions")
      return this.#working(servingId, signal, async (until) =>
        this.#sampled(served, servingId, parse(asks[what], await body()), until),
      );
    throw new OpenAiError(
      404,
      `There is no ${what.slice(0, 200)} here: there are GET /v1/models, POST /v1/completions and /v1/chat/completions.`,
    );
  }

  /**
   * A streamed answer is at work until it has been read, or nobody reads it any more.
   * @param work until its signal says that the client has left or the serving was stopped
   */
  async #working(servingId: string, left: AbortSignal, work: (until: AbortSignal) => Promise<Reply>): Promise<Reply> {
    if (this.#atWork >= mostAtWork)
      throw new OpenAiError(429, `${mostAtWork} requests are at work here: try again when one is done.`, {
        code: "busy",
      });
    this.#atWork++;
    const watched = this.#stopped.watch(servingId);
    const done = () => {
      this.#atWork--;
      watched.done();
    };
    try {
      const reply = await work(AbortSignal.any([left, watched.signal]));
      if (reply.bytes !== undefined && "body" in reply.bytes) reply.bytes.body.once("close", done);
      else done();
      return reply;
    } catch (error) {
      done();
      throw error;
    }
  }

  /** The same answer whatever is wrong: which servings there are is nobody's business. */
  async #served(servingId: string, key: string | null): Promise<Served> {
    const mayBe = key !== null && key.length <= maxKeyLength && ServingId.safeParse(servingId).success;
    const served = mayBe ? await findServed(this.#parts.pool, servingId, key) : null;
    if (served === null)
      throw new OpenAiError(401, "This key opens no serving here, or the serving was stopped.", {
        code: "invalid_api_key",
      });
    return served;
  }

  /** @throws OpenAiError while no worker is there that can read the checkpoint */
  async #samplerOf({ runId }: Served) {
    const { pool, samplers } = this.#parts;
    try {
      return (await samplers.of(runId, await readConfig(pool, runId))).stored;
    } catch (cause) {
      if (!(cause instanceof ProblemError)) throw cause;
      throw new OpenAiError(503, cause.message, { code: cause.problem, cause });
    }
  }

  async #sampled(served: Served, model: string, ask: ChatAsk | CompletionsAsk, signal: AbortSignal): Promise<Reply> {
    const tokenizer = await this.#parts.tokenizer(served).catch((cause: unknown) => {
      throw new OpenAiError(503, `The tokenizer of ${served.model} can't be loaded on this server.`, { cause });
    });
    const prompt = promptOf(ask, tokenizer);
    const created = Math.floor(Date.now() / 1000);
    const id = `${"messages" in ask ? "chatcmpl" : "cmpl"}-${newId()}`;
    const asked: Asked = { id, created, model, prompt, tokenizer };
    const sampler = await this.#samplerOf(served);
    const sample = sampleOf(ask, prompt, tokenizer);
    if (ask.stream) return streamed(sampler.stream(served.path, sample, signal), new CompletionChunks(asked, ask));
    const sequences = await sampler.sample(served.path, sample, signal).catch((error: unknown) => {
      throw meaning(error);
    });
    const sampled = { ...asked, sequences };
    return jsonReply(200, "messages" in ask ? chatAnswer(sampled, ask) : completionsAnswer(sampled, ask));
  }
}

/** What can't be sampled at all is told by the status; what goes wrong later is the last event, and nothing says that it is done. */
async function streamed(pieces: AsyncGenerator<SamplePiece, void, void>, chunks: CompletionChunks): Promise<Reply> {
  const first = await pieces.next().catch((error: unknown) => {
    throw meaning(error);
  });
  const body = Readable.from(
    eventsOf(first, pieces, chunks, () => body.destroy(new Error("nobody reads this stream on"))),
    { objectMode: false },
  );
  body.on("error", () => undefined);
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  return { status: 200, headers, body: "", bytes: { length: null, body } };
}

/** So long may pass between two reads of a stream. */
const idleLimitMs = 120_000;

async function* eventsOf(
  first: IteratorResult<SamplePiece, void>,
  pieces: AsyncGenerator<SamplePiece, void, void>,
  chunks: CompletionChunks,
  giveUp: () => void,
): AsyncGenerator<Buffer, void, void> {
  try {
    for (let next = first; next.done !== true; next = await pieces.next()) {
      const piece = next.value;
      const events =
        "stopReasons" in piece
          ? chunks.end(piece.stopReasons)
          : chunks.news(piece.sample, piece.tokens, piece.logprobs);
      if (events === "") continue;
      const idle = setTimeout(giveUp, idleLimitMs).unref();
      yield Buffer.from(events);
      clearTimeout(idle);
    }
  } catch (error) {
    const known = meaning(error);
    const told = known instanceof OpenAiError ? known : new OpenAiError(500, "Something went wrong on this server.");
    yield Buffer.from(`data: ${told.reply().body}\n\n`);
  } finally {
    await pieces.return();
  }
}

const models = (servingId: string): Reply =>
  jsonReply(200, { object: "list", data: [{ id: servingId, object: "model", created: 0, owned_by: "rolldeck" }] });

function promptOf(ask: ChatAsk | CompletionsAsk, tokenizer: Tokenizer): readonly number[] {
  if (!("messages" in ask)) return typeof ask.prompt === "string" ? tokenizer.encode(ask.prompt) : ask.prompt;
  try {
    return tokenizer.render(ask.messages, { generationPrompt: true });
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new OpenAiError(400, `The chat template refuses these messages: ${words.slice(0, 300)}`, {
      param: "messages",
      cause,
    });
  }
}

const defaultMaxTokens = 256;

function sampleOf(ask: ChatAsk | CompletionsAsk, prompt: readonly number[], tokenizer: Tokenizer): StoredSample {
  const chat = "messages" in ask;
  const maxTokens = chat ? (ask.max_completion_tokens ?? ask.max_tokens ?? defaultMaxTokens) : ask.max_tokens;
  return {
    prompt,
    samples: ask.n,
    maxTokens,
    temperature: ask.temperature,
    topP: ask.top_p,
    topK: ask.top_k,
    seed: ask.seed ?? null,
    stop: stopsOf(ask, chat ? tokenizer.stopTokens : []),
  };
}

/** The engine takes ids or texts, not both. */
function stopsOf(
  { stop, stop_token_ids: ids }: ChatAsk | CompletionsAsk,
  own: readonly number[],
): StoredSample["stop"] {
  const texts = stop == null ? [] : [stop].flat();
  if (texts.length === 0) return [...own, ...(ids ?? [])];
  if (own.length > 0)
    throw new OpenAiError(400, "stop: a chat ends where its template ends it; give further ends as stop_token_ids.", {
      param: "stop",
    });
  if (ids != null && ids.length > 0)
    throw new OpenAiError(400, "stop: give texts here or ids under stop_token_ids, not both.", { param: "stop" });
  return texts;
}

/** @throws OpenAiError that names the field */
function parse<T extends z.ZodType>(schema: T, bytes: Uint8Array): z.output<T> {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new OpenAiError(400, "The body is not JSON.", { cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const param = fieldPath([...(issue?.path ?? []), ...(unknown === undefined ? [] : [unknown])]).slice(0, 200);
  const words =
    unknown === undefined ? (issue?.message ?? "is not valid") : "a served checkpoint can't honour this setting";
  throw new OpenAiError(400, `${param || "body"}: ${words}`, { param: param || null });
}

function meaning(error: unknown): unknown {
  if (!(error instanceof BoundaryError)) return error;
  const { code, message } = error;
  const options = { code, cause: error };
  if (code === "bad_input" || code === "too_large") return new OpenAiError(400, message, options);
  if (code === "busy") return new OpenAiError(429, message, options);
  if (code === "unknown_model" || code === "conflict")
    return new OpenAiError(503, `The checkpoint can't be loaded any more: ${message}`, options);
  return new OpenAiError(503, "The GPU worker does not answer now.", options);
}
