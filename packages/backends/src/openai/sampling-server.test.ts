/** The wires of servers that only sample, over real HTTP: faults 9 (b), 11, 31 and 63, and what is sent. */
import { inspect } from "node:util";
import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { closeAll, connect, failure, fine, serve } from "../../testing/connected-sampler.ts";

afterEach(closeAll);

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
    vi.stubEnv("OPENAI_CUSTOM_HEADERS", "x-ambient: leaked");
    vi.stubEnv("OPENAI_ORG_ID", "ambient");
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = await serve(() => ({ content: "ok" }), { keys: ["sk-listed"] });
    const prompt = fixedPrompt([1], [{ role: "user", content: "hi" }]);
    const tools = [{ name: "look", description: "looks", parameters: { type: "object" } }];
    const { sample } = connect("openai-chat", [server.url], {
      keys: ["sk-listed"],
      maxTokensField: "max_completion_tokens",
    });
    await sample({ prompt, tools });
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
