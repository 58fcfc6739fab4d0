import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Prompt, SampleResult } from "@rolldeck/contracts/ports/sampler";
import type { Rollout } from "./rollout.ts";
import { turnSeed } from "./turn-seed.ts";

/**
 * One model call. The stop reason is judged by the tokens: a turn that does not end in an end token was cut, whatever the
 * server calls it, and a turn that the server calls cut is cut.
 * @param room context tokens left, at least 1
 * @throws BoundaryError("model-server") when ids and logprobs don't fit each other: such a turn can be neither read nor trained
 */
export async function takeSample(
  { spec, ports, signal, history }: Rollout,
  prompt: Prompt,
  tools: readonly ToolSpec[],
  room: number,
): Promise<{ result: SampleResult; sampleMs: number }> {
  const { sampling } = spec.agent;
  const startedAt = ports.now();
  const maxTokens = Math.min(sampling.maxTokensPerTurn, room);
  const result = await ports.sample(
    {
      affinityKey: spec.rolloutId,
      prompt,
      tools,
      maxTokens,
      temperature: spec.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      seed: turnSeed(spec.seed, history.turns),
      stopTokens: spec.tokenizer.stopTokens,
    },
    signal,
  );
  signal.throwIfAborted();
  checkSample(result, maxTokens);
  const last = result.tokens.at(-1);
  const ended = result.stopReason === "stop" && last !== undefined && spec.tokenizer.stopTokens.includes(last);
  return {
    result: { ...result, stopReason: ended ? "stop" : "length" },
    sampleMs: Math.max(0, ports.now() - startedAt),
  };
}

function checkSample({ tokens, logprobs }: SampleResult, maxTokens: number): void {
  const wrong = (message: string) =>
    new BoundaryError("model-server", "incomplete_sample", `the model server ${message}`, { retryable: true });
  if (tokens.length === 0) throw wrong("answered without a token");
  // A server that hides its tokens keeps the limit by its own count; ours of the same answer holds the call format's text too.
  if (logprobs !== null && tokens.length > maxTokens)
    throw wrong(`sent ${tokens.length} tokens where at most ${maxTokens} were asked for`);
  if (logprobs !== null && logprobs.length !== tokens.length)
    throw wrong(`sent ${tokens.length} tokens but ${logprobs.length} logprobs`);
}
