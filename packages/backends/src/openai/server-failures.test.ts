/** What a failing server does to us, over real HTTP: faults 18 and 33, streams that break, several endpoints. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { closeAll, connect, failure, fine, serve } from "../../testing/connected-sampler.ts";

afterEach(closeAll);

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
