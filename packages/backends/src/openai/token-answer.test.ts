/** Faults 9 (b), 18 and 31 (third server): what is held against each other on every turn. */
import { fixedPrompt, type SampleRequest } from "@rolldeck/contracts/ports/sampler";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sampleRequest } from "../../testing/conformance.ts";
import { type TokenAnswer, tokenSample } from "./token-answer.ts";

const request = sampleRequest({ prompt: fixedPrompt([1, 2, 3]), maxTokens: 12, stopTokens: [259] });
const good: TokenAnswer = {
  tokens: [10, 11, 259],
  logprobs: [-0.1, -0.2, -0.3],
  finishReason: "stop",
  promptTokens: 3,
  completionTokens: 3,
  cachedTokens: 2,
  samePrompt: true,
  streamed: false,
};
const judge = (changes: Partial<TokenAnswer> = {}, asked: Partial<SampleRequest> = {}) =>
  tokenSample({ ...good, ...changes }, { ...request, ...asked }, 4, "POST http://s");

test("a good answer passes without a note", () => {
  expect(judge()).toEqual({
    tokens: [10, 11, 259],
    logprobs: [-0.1, -0.2, -0.3],
    stopReason: "stop",
    policyVersion: 4,
    cacheHitTokens: 2,
  });
});

describe("fault 18: fewer streamed ids than tokens", () => {
  const twelve = Array.from({ length: 12 }, () => -0.5);
  test("7 ids, 12 counted, 12 logprobs: marked, and without logprobs, so that it can't be trained", () => {
    const result = judge({ tokens: [1, 2, 3, 4, 5, 6, 7], logprobs: twelve, completionTokens: 12, streamed: true });
    expect(result.logprobs).toBeNull();
    expect(result.notes?.map(({ kind }) => kind)).toEqual(["usage", "usage"]);
    expect(result.notes?.[0]?.message).toMatch(/counts 12 .* ids of 7; ask without streaming, or use a newer server/);
  });
  test("its twin with 12 of each is fine", () => {
    const result = judge({
      tokens: twelve.map((_, at) => at),
      logprobs: twelve,
      completionTokens: 12,
      finishReason: "length",
    });
    expect(result).toMatchObject({ logprobs: twelve, stopReason: "length" });
    expect(result.notes).toBeUndefined();
  });
  test("ids that are counted differently lose their logprobs even when both have one length", () => {
    expect(judge({ completionTokens: 4 })).toMatchObject({ logprobs: null, notes: [{ kind: "usage" }] });
  });
  test("a logprob that is missing or not finite makes all of them unknown", () => {
    for (const odd of [null, Number.NaN, Number.NEGATIVE_INFINITY]) {
      expect(judge({ logprobs: [-1, odd, -1] })).toMatchObject({ logprobs: null, notes: [{ kind: "usage" }] });
    }
    expect(judge({ logprobs: null })).toMatchObject({ logprobs: null });
  });
});

describe("fault 31: a server that cuts the front of the prompt", () => {
  test("448 counted of 551 sent", () => {
    const prompt = fixedPrompt(Array.from({ length: 551 }, () => 1));
    const result = judge({ promptTokens: 448, samePrompt: null }, { prompt });
    expect(result.notes).toEqual([{ kind: "drift", message: "551 prompt tokens were sent and the server counts 448" }]);
    expect(result.logprobs).toEqual(good.logprobs);
  });
  test("the same number of other ids", () => {
    expect(judge({ samePrompt: false }).notes).toMatchObject([{ kind: "drift" }]);
  });
});

describe("fault 9: an answer cut by its limit", () => {
  test("by reason, by count whatever the reason says, and not when it ends by itself on the last token", () => {
    const asked = { maxTokens: 3 };
    const cut = { tokens: [10, 11, 12] };
    expect(judge({ ...cut, finishReason: "length" }, asked).stopReason).toBe("length");
    expect(judge({ ...cut, finishReason: "tool_calls" }, asked).stopReason).toBe("length");
    expect(judge({ ...cut, finishReason: "stop" }, asked).stopReason).toBe("length");
    expect(judge({ finishReason: "stop" }, asked).stopReason).toBe("stop");
    expect(judge({ tokens: [10, 11, 12, 13], finishReason: "stop" }, asked).stopReason).toBe("length");
  });
  test("a server that stops at an end token of its own is noted", () => {
    expect(judge({ tokens: [10, 11, 12] }).notes).toMatchObject([
      { kind: "truncated", message: expect.stringContaining("12") },
    ]);
  });
  test("an unknown reason is noted, not swallowed", () => {
    expect(judge({ finishReason: "content_filter" }).notes).toMatchObject([{ kind: "usage" }]);
    expect(judge({ finishReason: null }).notes).toMatchObject([{ kind: "usage" }]);
  });
});

test("no ids, or none sampled: unusable, with what to do", () => {
  expect(() => judge({ tokens: null })).toThrow(/openai-chat/);
  expect(() => judge({ tokens: [], logprobs: [] })).toThrow(/no token/);
});

test("whatever the counts: logprobs have the ids' length or are null, and a doubt is always noted", () => {
  const ids = fc.array(fc.nat(300), { minLength: 1, maxLength: 20 });
  const logprobs = fc.option(fc.array(fc.option(fc.double({ max: 0 })), { maxLength: 20 }));
  const counts = fc.record({ completionTokens: fc.option(fc.nat(25)), promptTokens: fc.option(fc.nat(5)) });
  fc.assert(
    fc.property(ids, logprobs, counts, (tokens, values, { completionTokens, promptTokens }) => {
      const result = judge({ tokens, logprobs: values, completionTokens, promptTokens });
      expect(result.tokens).toEqual(tokens);
      if (result.logprobs !== null) expect(result.logprobs.length).toBe(tokens.length);
      const odd =
        (completionTokens !== null && completionTokens !== tokens.length) ||
        (values !== null && values.length !== tokens.length) ||
        (promptTokens !== null && promptTokens !== 3);
      if (odd) expect(result.notes?.length).toBeGreaterThan(0);
      if (completionTokens !== null && completionTokens !== tokens.length) expect(result.logprobs).toBeNull();
    }),
  );
});
