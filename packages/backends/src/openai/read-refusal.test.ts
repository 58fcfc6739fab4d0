import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { errorInside, readRefusal } from "./read-refusal.ts";

const read = (status: number | null, body: unknown, retryAfterMs: number | null = null) =>
  readRefusal(
    { status, retryAfterMs, text: typeof body === "string" ? body : JSON.stringify(body) },
    "POST http://s/v1",
  );

describe("fault 31: refusals that mean a full context", () => {
  test.each([
    ["at least 1", { error: { message: "at least 1" } }],
    [
      "vLLM, budget",
      { error: { message: "max_tokens must be at least 1, got -39.", type: "BadRequestError", code: 400 } },
    ],
    [
      "vLLM",
      {
        error: {
          message: "This model's maximum context length is 512 tokens. However, you requested 551 tokens.",
          code: 400,
        },
      },
    ],
    [
      "SGLang",
      {
        object: "error",
        message: "The input (551 tokens) is longer than the model's context length (512 tokens).",
        code: 400,
      },
    ],
    [
      "SGLang, budget",
      {
        object: "error",
        message: "Requested token count exceeds the model's maximum context length of 512 tokens.",
        code: 400,
      },
    ],
    [
      "llama.cpp",
      {
        error: {
          code: 400,
          type: "exceed_context_size_error",
          message: "request (551 tokens) exceeds the available context size (512 tokens)",
        },
      },
    ],
    [
      "OpenAI",
      { error: { code: "context_length_exceeded", message: "too many tokens", type: "invalid_request_error" } },
    ],
    ["plain", "Input is too long for requested model"],
    ["FastAPI", { detail: [{ msg: "prompt exceeds the maximum context length" }] }],
  ])("%s", (_name, body) => {
    expect(read(400, body)).toMatchObject({ is: "failed", error: { code: "context_full", retryable: false } });
  });

  test.each([
    ["another refusal", 400, { error: { message: "messages: at least 1 item is required" } }, "bad_input"],
    [
      "the words behind a 500 are no verdict on the request",
      500,
      { error: { message: "maximum context length" } },
      "internal",
    ],
    ["a wrong temperature", 400, { error: { message: "temperature must be at least 0" } }, "bad_input"],
  ])("not: %s", (_name, status, body, code) => {
    expect(read(status, body)).toMatchObject({ error: { code } });
  });
});

test.each([
  [408, "retry", "timeout"],
  [409, "retry", "refused"],
  [429, "retry", "rate_limited"],
  [500, "retry", "internal"],
  [501, "retry", "internal"],
  [502, "retry", "unreachable"],
  [503, "retry", "unreachable"],
  [504, "retry", "unreachable"],
  [529, "retry", "internal"],
  [400, "failed", "bad_input"],
  [401, "failed", "unauthorised"],
  [402, "failed", "payment_required"],
  [403, "failed", "unauthorised"],
  [404, "failed", "no_such_route_or_model"],
  [405, "failed", "refused"],
  [413, "failed", "too_large"],
  [422, "failed", "bad_input"],
])("fault 33: HTTP %d is %s, %s", (status, is, code) => {
  expect(read(status, "no")).toMatchObject({ is, error: { boundary: "model-server", code } });
});

test("a quota that is used up is no reason to wait, though it comes as 429", () => {
  const body = { error: { message: "You exceeded your current quota", code: "insufficient_quota" } };
  expect(read(429, body, 1_000)).toMatchObject({ is: "failed", error: { code: "quota_exceeded" } });
});

test("an error inside an answer carries its own status", () => {
  expect(read(null, { error: { message: "engine died", code: 500 } })).toMatchObject({
    is: "retry",
    error: { code: "internal" },
  });
  expect(read(null, { error: { message: "no", code: 429 } })).toMatchObject({
    is: "retry",
    error: { code: "rate_limited" },
  });
  expect(read(null, { error: { message: "no such model", code: 404 } })).toMatchObject({ is: "failed" });
  expect(read(null, { error: "something" })).toMatchObject({ is: "retry" });
  expect(errorInside({ choices: [], error: null })).toBeNull();
  expect(errorInside({ choices: [] })).toBeNull();
  expect(errorInside({ object: "error", message: "x" })).not.toBeNull();
  expect(errorInside({ error: { message: "x" } })).not.toBeNull();
});

test("whatever a server says, it is read, bounded and typed", () => {
  fc.assert(
    fc.property(fc.option(fc.integer({ min: 300, max: 599 })), fc.oneof(fc.string(), fc.json()), (status, text) => {
      const refused = readRefusal({ status, retryAfterMs: null, text }, "POST http://s");
      expect(refused.error.boundary).toBe("model-server");
      expect(refused.error.message.length).toBeLessThan(500);
      const repeated = refused.is === "retry";
      if (status !== null && status < 500 && repeated)
        expect(status < 400 || [408, 409, 429].includes(status)).toBe(true);
    }),
  );
});
