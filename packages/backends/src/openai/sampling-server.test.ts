/** What a server may do to us, over real HTTP: fault classes LLM (31, 33), TC 9 (b) and 11, TOK 18, SEC 63. */
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import type { BoundaryError } from "@rolldeck/contracts/errors";
import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { afterEach, describe, expect, test } from "vitest";
import {
  type AnswerScript,
  type CompletionServer,
  type CompletionServerOptions,
  startCompletionServer,
} from "../../testing/completion-server.ts";
import { never, sampleRequest } from "../../testing/conformance.ts";
import { simpleChatText } from "../../testing/simple-chat-text.ts";
import { bareEndpoint, type Endpoint, type EndpointKind } from "./endpoint.ts";
import { connectSamplingServer } from "./sampling-server.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function serve(answer: AnswerScript, options: Partial<CompletionServerOptions> = {}): Promise<CompletionServer> {
  const server = await startCompletionServer({ answer, ...options });
  open.push(server);
  return server;
}
function connect(kind: EndpointKind, urls: readonly string[], changes: Partial<Endpoint> = {}) {
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
const failure = (sampling: Promise<unknown>): Promise<BoundaryError> =>
  sampling.then(
    () => expect.unreachable("it should have failed"),
    (error) => error,
  );
const fine = { tokens: [111, 107, 259] };

describe("the request", () => {
  test("completions: the prompt's own bytes, stop ids, and what asks for ids and logprobs", async () => {
    const server = await serve(() => fine);
    await connect("openai-completions", [`${server.url}/v1/`]).sample({ topK: 40, prompt: fixedPrompt([5, 6, 7]) });
    const [asked] = server.asks;
    expect(asked?.promptTokens()).toEqual([5, 6, 7]);
    expect(asked?.body).toMatchObject({
      model: "model-a",
      max_tokens: 32,
      temperature: 0.7,
      top_p: 1,
      top_k: 40,
      seed: 7,
      stop_token_ids: [259],
      logprobs: 1,
      return_token_ids: true,
      stream: false,
    });
    expect(asked?.affinityKey).toBe("rollout-1");
  });

  test("generate: sampling parameters of their own, beside /v1", async () => {
    const server = await serve(() => fine);
    await connect("vllm-generate", [`${server.url}/v1`], { model: "served" }).sample();
    expect(server.asks[0]?.body).toMatchObject({
      model: "served",
      sampling_params: { max_tokens: 32, seed: 7, stop_token_ids: [259], logprobs: 0 },
    });
    expect(server.asks[0]?.body.sampling_params).not.toHaveProperty("top_k");
  });

  test("chat: messages and tools, no tokens; only what the operator listed is sent", async () => {
    process.env.OPENAI_CUSTOM_HEADERS = "x-ambient: leaked";
    process.env.OPENAI_ORG_ID = "ambient";
    const server = await serve(() => ({ content: "ok" }), { keys: ["sk-listed"] });
    const prompt = fixedPrompt([1], [{ role: "user", content: "hi" }]);
    const tools = [{ name: "look", description: "looks", parameters: { type: "object" } }];
    const { sample } = connect("openai-chat", [server.url], {
      keys: ["sk-listed"],
      maxTokensField: "max_completion_tokens",
    });
    await sample({ prompt, tools });
    delete process.env.OPENAI_CUSTOM_HEADERS;
    delete process.env.OPENAI_ORG_ID;
    const [asked] = server.asks;
    expect(asked?.body).toMatchObject({
      model: "model-a",
      messages: [{ role: "user", content: "hi" }],
      tools: [{ type: "function", function: tools[0] }],
      max_completion_tokens: 32,
    });
    expect(asked?.body).not.toHaveProperty("max_tokens");
    expect(asked?.headers).not.toHaveProperty("x-ambient");
    expect(asked?.headers).not.toHaveProperty("openai-organization");
    expect(asked?.headers.authorization).toBe("Bearer sk-listed");
  });
});

test("chat: an endpoint's own wishes, and fields that its server refuses", async () => {
  const server = await serve(() => ({ content: "ok" }));
  const { sample } = connect("openai-chat", [server.url], {
    omitFields: ["seed", "stream_options"],
    extraBody: { chat_template_kwargs: { enable_thinking: false }, model: "not this one" },
  });
  await sample();
  const [asked] = server.asks;
  expect(asked?.body).toMatchObject({ model: "model-a", chat_template_kwargs: { enable_thinking: false }, top_p: 1 });
  expect(asked?.body).not.toHaveProperty("seed");
  expect(asked?.body).not.toHaveProperty("stream_options");
});

describe("fault 33: Retry-After", () => {
  test("of a second is waited out, said aloud, and can be ended", async () => {
    const server = await serve(({ turn }) => (turn === 0 ? { status: 429, headers: { "retry-after": "1" } } : fine));
    for (const kind of ["openai-completions", "openai-chat"] as const) {
      const { sample, waits } = connect(kind, [server.url]);
      const startedAt = performance.now();
      await sample({ affinityKey: kind });
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(999);
      expect(waits[0]?.reason).toContain("429");
      expect(waits[0]?.untilMs).toBeGreaterThan(Date.now() - 1_000);
      const stop = new AbortController();
      const sampling = failure(sample({ affinityKey: `${kind}-stopped` }, stop.signal));
      while (waits.length < 2) await sleep(5);
      stop.abort(new Error("the run was stopped"));
      expect(await sampling).toMatchObject({ message: "the run was stopped" });
    }
  });

  test("as a date counts like seconds", async () => {
    const date = new Date(Date.now() + 2_000).toUTCString();
    const server = await serve(({ turn }) => (turn === 0 ? { status: 429, headers: { "retry-after": date } } : fine));
    await connect("openai-completions", [server.url]).sample();
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(date));
  });

  test("of two weeks fails at once with the reason", async () => {
    const server = await serve(() => ({
      status: 429,
      headers: { "retry-after": "1209600" },
      body: { error: "quota" },
    }));
    for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
      const before = server.stats.requests;
      const error = await failure(connect(kind, [server.url]).sample());
      expect(error).toMatchObject({ code: "rate_limited", retryable: false });
      expect(error.message).toMatch(/quota.*336\.0 h/);
      expect(server.stats.requests).toBe(before + 1);
    }
  });

  test.each(["-1", "abc"])("of %j counts as none", async (retryAfter) => {
    const server = await serve(({ turn }) =>
      turn === 0 ? { status: 429, headers: { "retry-after": retryAfter } } : fine,
    );
    await connect("openai-completions", [server.url]).sample();
    expect(server.stats.requests).toBe(2);
  });

  test.each([401, 404])("%d is final at once, with several endpoints too", async (status) => {
    const server = await serve(() => ({ status, body: { error: { message: "no" } } }));
    const another = await serve(() => ({ status, body: { error: { message: "no" } } }));
    for (const kind of ["openai-completions", "openai-chat"] as const) {
      const error = await failure(connect(kind, [server.url, another.url]).sample());
      // None of the codes that make the worker wait for a model of its own to come back.
      expect(["unauthorised", "no_such_route_or_model"]).toContain(error.code);
    }
    expect(server.stats.requests + another.stats.requests).toBe(2);
  });

  test("a mix of every failure that may pass ends well within the bounded tries", async () => {
    const mix = [
      { status: 500 },
      { reset: true },
      { status: 429 },
      { status: 503 },
      { status: 408 },
      { partial: '{"cho' },
    ] as const;
    const server = await serve(({ turn }) => mix[turn] ?? fine);
    for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
      const result = await connect(kind, [server.url]).sample({ affinityKey: kind });
      expect(result.stopReason).toBe("stop");
    }
    expect(server.stats.requests).toBe(3 * (mix.length + 1));
  });

  test("tries are bounded: eight, then the server's own words", async () => {
    const server = await serve(() => ({ status: 500, body: { error: { message: "CUDA error" } } }));
    const error = await failure(connect("openai-completions", [server.url]).sample());
    expect(server.stats.requests).toBe(8);
    expect(error.message).toMatch(/CUDA error.*8 tries/);
  });

  test("a server that hangs is given up after the limit of a try", async () => {
    const server = await serve(() => ({ hang: true }));
    for (const kind of ["openai-completions", "openai-chat"] as const) {
      const error = await failure(connect(kind, [server.url], { tryTimeoutMs: 50, maxTries: 2 }).sample());
      expect(error).toMatchObject({ code: "timeout", boundary: "model-server" });
    }
    expect(server.stats.requests).toBe(4);
  });
});

describe("several endpoints and keys", () => {
  test("rollouts spread, each stays on its own, and falls over when that dies", async () => {
    const servers = await Promise.all([serve(() => fine), serve(() => fine), serve(() => fine)]);
    const { sample } = connect(
      "openai-completions",
      servers.map(({ url }) => url),
    );
    const keys = Array.from({ length: 30 }, (_, rollout) => `rollout-${rollout}`);
    for (const affinityKey of [...keys, ...keys]) await sample({ affinityKey });
    const homes = servers.map(({ asks }) => new Set(asks.map(({ affinityKey }) => affinityKey)));
    expect(homes.every((home) => home.size > 0)).toBe(true);
    expect(homes.reduce((sum, home) => sum + home.size, 0)).toBe(30);
    const [dead, ...alive] = servers;
    await dead?.close();
    for (const affinityKey of keys) await sample({ affinityKey });
    const moved = new Set(alive.flatMap(({ asks }) => asks.map(({ affinityKey }) => affinityKey)));
    expect(moved.size).toBe(30);
  });

  test("a key that is rate limited rests while the other goes on", async () => {
    const server = await serve(({ headers }) =>
      headers.authorization === "Bearer sk-1" ? { status: 429, headers: { "retry-after": "30" } } : fine,
    );
    const { sample } = connect("openai-completions", [server.url], { keys: ["sk-1", "sk-2"] });
    for (let rollout = 0; rollout < 10; rollout++) await sample({ affinityKey: `rollout-${rollout}` });
    expect(server.asks.filter(({ headers }) => headers.authorization === "Bearer sk-1")).toHaveLength(1);
  });
});

describe("streams", () => {
  test.each(["openai-completions", "vllm-generate", "openai-chat"] as const)(
    "%s: a server that dies in the middle is asked again, and nothing of the half is kept",
    async (kind) => {
      const whole = { tokens: [1, 2, 3, 4, 5, 6, 7, 8, 259], content: "a whole answer" };
      const server = await serve(({ turn }) => (turn < 2 ? { ...whole, dieAfter: turn + 1 } : whole));
      const result = await connect(kind, [server.url], { stream: true }).sample();
      expect(server.stats.requests).toBe(3);
      if (kind !== "openai-chat") expect(result.tokens).toEqual(whole.tokens);
    },
  );

  test.each(["openai-completions", "openai-chat"] as const)("%s: an error in the middle of HTTP 200", async (kind) => {
    const begun = { choices: [{ index: 0, delta: { content: "be" }, token_ids: [1], finish_reason: null }] };
    const died = { error: { message: "engine is dead", type: "InternalServerError", code: 500 } };
    const full = { error: { message: "maximum context length is 512", code: 400 } };
    const server = await serve(({ turn }) =>
      turn === 0 ? { chunks: [begun, died] } : turn === 1 ? { chunks: [begun, full] } : fine,
    );
    const { sample, waits } = connect(kind, [server.url], { stream: true });
    expect(await failure(sample())).toMatchObject({ code: "context_full" });
    expect(waits[0]?.reason).toContain("engine is dead");
  });

  test.each(["openai-completions", "openai-chat"] as const)("%s: garbage, and an end without an end", async (kind) => {
    const begun = { choices: [{ index: 0, delta: { content: "be" }, token_ids: [1], finish_reason: null }] };
    const server = await serve(({ turn }) =>
      turn === 0
        ? { chunks: ["data: {nonsense\n\n"] }
        : turn === 1
          ? { chunks: [begun, "data: {\n"], dieAfter: 2 }
          : fine,
    );
    await connect(kind, [server.url], { stream: true }).sample();
    expect(server.stats.requests).toBe(3);
  });

  test("an error inside a whole HTTP 200 is an error", async () => {
    const body = { error: { message: "no GPU left", code: 503 } };
    const server = await serve(({ turn }) => (turn === 0 ? { status: 200, body } : fine));
    for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
      const { sample, waits } = connect(kind, [server.url]);
      await sample({ affinityKey: kind });
      expect(waits[0]?.reason).toContain("no GPU left");
    }
  });

  test("fault 18: a stream that leaves out ids is marked; whole, the same answer is fine", async () => {
    const ids = Array.from({ length: 12 }, (_, at) => 248 + at);
    const server = await serve(({ stream }) => ({
      tokens: stream ? ids.slice(0, 7) : ids,
      logprobs: ids.map(() => -0.5),
      usage: { completionTokens: 12 },
    }));
    const streamed = await connect("openai-completions", [server.url], { stream: true }).sample();
    expect(streamed).toMatchObject({ logprobs: null, notes: [{ kind: "usage" }, { kind: "usage" }] });
    const whole = await connect("openai-completions", [server.url]).sample();
    expect(whole.notes).toBeUndefined();
    expect(whole.logprobs).toHaveLength(12);
  });

  test("streamed and whole give the same sample", async () => {
    const server = await serve(() => ({
      tokens: [1, 2, 3, 4, 5, 259],
      content: "hello 🙂",
      calls: [{ name: "f", arguments: '{"a":1}' }],
    }));
    for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
      const [streamed, whole] = await Promise.all(
        [true, false].map((stream) => connect(kind, [server.url], { stream }).sample()),
      );
      expect(streamed).toEqual(whole);
    }
  });
});

test("fault 31: context full is said before and after the fact", async () => {
  const words = ["at least 1", "This model's maximum context length is 512 tokens"];
  const server = await serve(({ turn }) =>
    turn < 2
      ? { status: 400, body: { error: { message: words[turn] } } }
      : { ...fine, usage: { promptTokens: 448 }, promptTokenIds: null },
  );
  const { sample } = connect("openai-completions", [server.url]);
  const prompt = fixedPrompt(Array.from({ length: 551 }, () => 1));
  expect(await failure(sample({ prompt }))).toMatchObject({ code: "context_full" });
  expect(await failure(sample({ prompt }))).toMatchObject({ code: "context_full" });
  expect((await sample({ prompt })).notes).toMatchObject([{ kind: "drift" }]);
});

test('fault 9 (b): "tool_calls" of an answer that used up its tokens is cut', async () => {
  const calls = [{ name: "write", arguments: '{"path":"a.md","content":"# Ti' }];
  const server = await serve(({ maxTokens }) => ({ calls, usage: { completionTokens: maxTokens } }));
  for (const stream of [true, false]) {
    expect((await connect("openai-chat", [server.url], { stream }).sample()).stopReason).toBe("length");
  }
});

test("ids named in logprobs are ids; a server that hides them says what to do", async () => {
  const server = await serve(({ turn }) => ({ ...fine, hideTokenIds: true, tokenIdStrings: turn === 0 }));
  const { sample } = connect("openai-completions", [server.url]);
  expect((await sample()).tokens).toEqual(fine.tokens);
  expect(await failure(sample())).toMatchObject({ code: "hidden_tokens" });
});

describe("is anybody there?", () => {
  test("a list of models, or no such route, is an answer; a refused key is final; nobody is not", async () => {
    const server = await serve(() => fine, { keys: ["sk-good"] });
    const good = connect("openai-completions", [server.url], { keys: ["sk-good"] });
    expect(await good.backend.info()).toMatchObject({ device: "remote", models: [{ name: "scripted" }], losses: [] });
    expect((await good.backend.info()).bootId).toBe((await good.backend.info()).bootId);
    const bad = connect("openai-completions", [server.url], { keys: ["sk-bad"] });
    expect(await failure(bad.backend.info())).toMatchObject({ code: "unauthorised", retryable: false });
    const bare = await serve(() => fine, { models: () => ({ status: 404 }) });
    expect(await connect("vllm-generate", [bare.url]).backend.info()).toMatchObject({ models: [] });
    await bare.close();
    expect(await failure(connect("openai-chat", [bare.url]).backend.info())).toMatchObject({ code: "unreachable" });
  });

  test("its model is there at version 0, and nothing trains it", async () => {
    const server = await serve(() => fine);
    const { backend } = connect("openai-completions", [server.url]);
    const model = await backend.createModel({ baseModel: "m", seed: 1, fence: { runId: "r", token: 1 } });
    expect(await model.saveWeightsForSampler(1)).toEqual({ samplingSessionId: "m", weightVersion: 0 });
    expect(await model.state()).toMatchObject({ step: 0 });
    await expect(model.optimStep({} as never, { seqId: 1, expectStep: 0 })).rejects.toMatchObject({
      code: "unsupported",
    });
    await model.unload?.();
  });
});

test("fault 63: a server that echoes the key, and an address with a password: neither is in any message", async () => {
  const server = await serve(({ headers }) => ({
    status: 400,
    body: { error: { message: `bad header ${headers.authorization}` } },
  }));
  const address = server.url.replace("http://", "http://user:pw-canary@");
  const messages: string[] = [];
  for (const kind of ["openai-completions", "vllm-generate", "openai-chat"] as const) {
    for (const stream of [true, false]) {
      const { sample, waits } = connect(kind, [address], { keys: ["sk-canary-0001"], stream });
      const error = await failure(sample());
      // As a log would write it, causes and all.
      messages.push(inspect(error, { depth: 20, showHidden: true }), JSON.stringify(waits));
    }
  }
  await server.close();
  const gone = await failure(connect("openai-chat", [address], { keys: ["sk-canary-0001"], maxTries: 2 }).sample());
  messages.push(inspect(gone, { depth: 20, showHidden: true }));
  expect(messages.join("\n")).toContain("[key]");
  expect(messages.join("\n")).not.toMatch(/canary/);
});
