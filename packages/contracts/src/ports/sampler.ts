/** The one way to get tokens from a policy: token ids in, token ids and logprobs out. */
export interface SampleRequest {
  /** Keeps one rollout on one engine replica, and names the prefix cache entry. */
  readonly affinityKey: string;
  readonly promptTokens: readonly number[];
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** −1 means off. */
  readonly topK: number;
  readonly seed: number;
  /** Token ids at which sampling stops; the stop token is part of the result. */
  readonly stopTokens: readonly number[];
}
export interface SampleResult {
  readonly tokens: readonly number[];
  /** Same length as `tokens`. */
  readonly logprobs: readonly number[];
  readonly stopReason: "stop" | "length";
  readonly policyVersion: number;
  readonly cacheHitTokens: number;
}
export interface Sampler {
  /** @throws BoundaryError("model-server") with `retryable`; the signal closes the connection and cancels the request. */
  sample(request: SampleRequest, signal: AbortSignal): Promise<SampleResult>;
}
