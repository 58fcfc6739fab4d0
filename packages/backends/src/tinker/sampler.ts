/**
 * Tokens from a served policy. Invariant: a result's tokens and logprobs are the engine's own, of equal length; an answer
 * that breaks this is refused here, so that it can't become a training row.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SampleRequest, SampleResult, Sampler } from "@rolldeck/contracts/ports/sampler";
import { SampleReply } from "@rolldeck/contracts/wire/tinker";
import { headerSafe } from "../http/header-safe.ts";
import { promptBody, type RequestBody } from "../http/prompt-body.ts";
import type { Wait } from "../resilient/resilient-calls.ts";
import type { TinkerDialect } from "./dialects.ts";
import { awaitFuture } from "./future.ts";
import type { TinkerHttp } from "./http.ts";
import { parseReply } from "./parse-reply.ts";

export interface SamplerOptions {
  readonly http: TinkerHttp;
  readonly dialect: TinkerDialect;
  readonly samplingSessionId: string;
  /** What samples carry when the server does not name its weights. */
  readonly policyVersion: number | undefined;
  /** Numbers asample requests of one client; unused where one call answers. */
  readonly nextSeqId: () => number;
  readonly onWait?: ((wait: Wait) => void) | undefined;
  /** Failures are waited out this long; then the caller looks whether another version serves. */
  readonly outageMs: number;
}

export class TinkerSampler implements Sampler {
  readonly #options: SamplerOptions;

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  async sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const { dialect, policyVersion } = this.#options;
    const json = dialect.oneCallSampling ? await this.#oneCall(request, signal) : await this.#twoCalls(request, signal);
    return checkedSample(parseReply(SampleReply, json, "sample"), request, policyVersion);
  }

  #oneCall(request: SampleRequest, signal: AbortSignal): Promise<unknown> {
    const { http, samplingSessionId, outageMs, onWait } = this.#options;
    return http.json({
      method: "POST",
      path: "/ext/v1/sample",
      body: sampleBody(request, targetOf(samplingSessionId)),
      headers: { "x-rolldeck-affinity": headerSafe(request.affinityKey) },
      signal,
      outageMs,
      onWait,
    });
  }

  #twoCalls(request: SampleRequest, signal: AbortSignal): Promise<unknown> {
    const { http, samplingSessionId, nextSeqId, outageMs, onWait } = this.#options;
    const body = sampleBody(request, { sampling_session_id: samplingSessionId, seq_id: nextSeqId() });
    return awaitFuture(http, { path: "/api/v1/asample", body, signal, outageMs, onWait });
  }
}

/** Stored weights have a path, those in a server's memory a session. */
const targetOf = (samplingSessionId: string): Readonly<Record<string, string>> =>
  samplingSessionId.startsWith("tinker://")
    ? { model_path: samplingSessionId }
    : { sampling_session_id: samplingSessionId };

function sampleBody(request: SampleRequest, target: Readonly<Record<string, string | number>>): RequestBody {
  const rest = JSON.stringify({
    num_samples: 1,
    sampling_params: {
      max_tokens: request.maxTokens,
      temperature: request.temperature,
      top_p: request.topP,
      top_k: request.topK,
      seed: request.seed,
      stop: request.stopTokens,
    },
    ...target,
  });
  return promptBody('{"prompt":{"chunks":[{"type":"encoded_text","tokens":', request.prompt, `}]},${rest.slice(1)}`);
}

/** @throws BoundaryError("model-server") for an answer that can't be trained on or recorded */
export function checkedSample(
  reply: SampleReply,
  request: Pick<SampleRequest, "maxTokens">,
  policyVersion: number | undefined,
): SampleResult {
  const [sequence, ...more] = reply.sequences;
  if (sequence === undefined || more.length > 0) throw unusable(`${reply.sequences.length} sequences for one sample`);
  const { tokens, logprobs, stop_reason } = sequence;
  if (!logprobs) throw unusable("the server gave no logprobs");
  if (tokens.length !== logprobs.length) {
    throw unusable(`${tokens.length} tokens with ${logprobs.length} logprobs`);
  }
  if (tokens.length === 0) throw unusable("no token was sampled");
  if (tokens.length > request.maxTokens)
    throw unusable(`${tokens.length} tokens, at most ${request.maxTokens} were asked`);
  const version = reply.weight_version ?? policyVersion;
  if (version === undefined) throw unusable("the server does not say which weights sampled");
  return {
    tokens,
    logprobs,
    stopReason: stop_reason,
    policyVersion: version,
    cacheHitTokens: reply.prompt_cache_hit_tokens ?? 0,
  };
}

const unusable = (message: string): BoundaryError =>
  new BoundaryError("model-server", "unusable_sample", `sample: ${message}`);
