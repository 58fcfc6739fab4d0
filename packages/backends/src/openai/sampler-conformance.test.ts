import { type CompletionAnswer, type CompletionAsk, startCompletionServer } from "../../testing/completion-server.ts";
import { describeSampler, type ServerFault, type StartedSampler } from "../../testing/sampler-conformance.ts";
import { type ScriptedWorker, startScriptedWorker } from "../../testing/scripted-worker.ts";
import { simpleChatText } from "../../testing/simple-chat-text.ts";
import { connectTinker } from "../tinker/connect.ts";
import { bareEndpoint, type EndpointKind } from "./endpoint.ts";
import { connectSamplingServer } from "./sampling-server.ts";

const contextFull = {
  message: "This model's maximum context length is 512 tokens. However, you requested 551 tokens.",
};
const broken: Readonly<Record<ServerFault, CompletionAnswer>> = {
  error: { status: 500, body: { error: { message: "internal" } } },
  busy: { status: 429, headers: { "retry-after": "0" }, body: { error: { message: "busy" } } },
  reset: { reset: true },
  hang: { hang: true },
  garbage: { status: 200, body: "<html>gateway</html>" },
  unauthorised: { status: 401, body: { error: { message: "invalid key" } } },
  context: { status: 400, body: { error: contextFull } },
};

async function startOpenAi(kind: EndpointKind, stream: boolean): Promise<StartedSampler> {
  const faults: ServerFault[] = [];
  const answer = (ask: CompletionAsk): CompletionAnswer => {
    const fault = faults.shift();
    if (fault !== undefined) return broken[fault];
    if (ask.path === "chat") {
      const cut = ask.maxTokens <= 1;
      return { content: "ok", finishReason: cut ? "length" : "stop", usage: { completionTokens: cut ? 1 : 3 } };
    }
    const tokens = [111, 107, 259].slice(0, ask.maxTokens);
    return { tokens, finishReason: tokens.length === 3 ? "stop" : "length" };
  };
  const server = await startCompletionServer({ answer });
  const backend = connectSamplingServer({
    endpoint: { ...bareEndpoint(kind, server.url), stream, maxTries: 4, firstPauseMs: 5, keys: ["sk-canary"] },
    encoder: async () => (text) => [...Buffer.from(text)],
    chatText: simpleChatText,
  });
  return {
    sampler: backend.sampler({ samplingSessionId: "scripted" }),
    fail: (fault, times = 1) => faults.push(...Array.from({ length: times }, () => fault)),
    requests: () => server.stats.requests,
    cancelled: () => server.stats.cancelled,
    close: async () => {
      await backend.close();
      await server.close();
    },
  };
}

async function startTinker(dialect: "rolldeck"): Promise<StartedSampler> {
  const worker = await startScriptedWorker({ policy: () => "ok" });
  const backend = connectTinker({
    url: worker.url,
    apiKey: worker.apiKey,
    dialect,
    backoffMs: 5,
    samplingOutageMs: 300,
  });
  const fence = { runId: "run", token: 1 };
  const { samplingSessionId } = await (
    await backend.createModel({ baseModel: "quickstart", seed: 1, fence })
  ).saveWeightsForSampler(1);
  const requests = () => worker.stats.requests.get("/ext/v1/sample") ?? 0;
  return {
    sampler: backend.sampler({ samplingSessionId }),
    fail: (fault, times = 1) => failTinker(worker, fault, times),
    requests,
    cancelled: () => worker.stats.cancelled,
    close: async () => {
      await backend.close();
      await worker.close();
    },
  };
}

function failTinker(worker: ScriptedWorker, fault: ServerFault, times: number): void {
  const path = /sample$/;
  if (fault === "error" || fault === "reset" || fault === "hang") worker.fail({ path, kind: fault, times });
  else if (fault === "busy") worker.fail({ path, kind: "busy", retryAfter: "0", times });
  else worker.fail({ path, kind: "answer", times, ...tinkerAnswers[fault] });
}
const tinkerAnswers = {
  garbage: { status: 200, text: "<html>gateway</html>" },
  unauthorised: { status: 401, text: JSON.stringify({ detail: "no such key", code: "unauthorised" }) },
  context: {
    status: 400,
    text: JSON.stringify({
      detail: "512 prompt tokens + 4 exceed the context of 512",
      code: "bad_input",
      field: "prompt",
    }),
  },
} as const;

describeSampler({ name: "tinker", hidesTokens: false, start: () => startTinker("rolldeck") });
for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
  for (const stream of [false, true]) {
    const name = `${kind}${stream ? ", streamed" : ""}`;
    describeSampler({ name, hidesTokens: kind === "openai-chat", start: () => startOpenAi(kind, stream) });
  }
}
