/** A sampler on a scripted server, both closed by `closeAll`; for tests of what servers do to us. */
import type { BoundaryError } from "@rolldeck/contracts/errors";
import { bareEndpoint, type Endpoint, type EndpointKind } from "../src/openai/endpoint.ts";
import { connectSamplingServer } from "../src/openai/sampling-server.ts";
import {
  type AnswerScript,
  type CompletionServer,
  type CompletionServerOptions,
  startCompletionServer,
} from "./completion-server.ts";
import { never, sampleRequest } from "./conformance.ts";
import { simpleChatText } from "./simple-chat-text.ts";

const open: { close(): Promise<void> }[] = [];

export async function closeAll(): Promise<void> {
  await Promise.all(open.splice(0).map((each) => each.close()));
}

export async function serve(
  answer: AnswerScript,
  options: Partial<CompletionServerOptions> = {},
): Promise<CompletionServer> {
  const server = await startCompletionServer({ answer, ...options });
  open.push(server);
  return server;
}

/** `sample` asks for model-a; `waits` is what the sampler said of its waits. */
export function connect(kind: EndpointKind, urls: readonly string[], changes: Partial<Endpoint> = {}) {
  const backend = connectSamplingServer({
    endpoint: { ...bareEndpoint(kind, urls[0] ?? ""), urls: [...urls], firstPauseMs: 5, ...changes },
    encoder: async () => (text) => [...Buffer.from(text)],
    chatText: simpleChatText,
  });
  open.push(backend);
  const waits: { untilMs: number; reason: string }[] = [];
  const sampler = backend.sampler({ samplingSessionId: "model-a", onWait: (wait) => waits.push(wait) });
  const sample = (changed: Parameters<typeof sampleRequest>[0] = {}, signal = never()) =>
    sampler.sample(sampleRequest(changed), signal);
  return { backend, sample, waits };
}

/** The error that it ends with. @throws when it does not fail */
export const failure = (sampling: Promise<unknown>): Promise<BoundaryError> =>
  sampling.then(
    () => {
      throw new Error("it should have failed");
    },
    (error) => error,
  );

/** The tokens of "ok" and the stop token. */
export const fine = { tokens: [111, 107, 259] };
