import { BoundaryError, FencedError } from "@rolldeck/contracts/errors";
import { describe, expect, test } from "vitest";
import { classify } from "./classify.ts";

const now = Date.parse("2026-11-29T12:00:00Z");
const answer = (status: number, body: unknown = {}, retryAfter?: string) =>
  classify({ status, retryAfter, text: typeof body === "string" ? body : JSON.stringify(body) }, "POST /x", now);

describe("what an answer means", () => {
  test("success is its JSON, no content is an empty object", () => {
    expect(answer(200, { a: 1 })).toEqual({ is: "done", json: { a: 1 } });
    expect(answer(204, "")).toEqual({ is: "done", json: {} });
  });

  test("a future that is not ready is asked for again, a lost one submitted again", () => {
    expect(answer(200, { type: "try_again", queue_state: "active" })).toEqual({ is: "pending" });
    expect(answer(408, "whatever")).toEqual({ is: "pending" });
    expect(answer(410, { detail: "gone" })).toEqual({ is: "lost" });
  });

  test.each([
    ["user", false],
    ["server", true],
    ["unknown", false],
    ["something new", false],
  ])("a future that failed as %s is over; retryable %s", (category, retryable) => {
    const result = answer(200, { error: "no", category });
    expect(result.is === "failed" && result.error).toMatchObject({ code: "future_failed", retryable });
  });

  test.each([
    [400, "bad_input"],
    [401, "unauthorised"],
    [402, "payment_required"],
    [404, "not_found"],
    [409, "conflict"],
    [413, "too_large"],
    [422, "bad_input"],
    [418, "refused"],
  ])("HTTP %i fails at once as %s", (status, code) => {
    const result = answer(status, { detail: "why" });
    if (result.is !== "failed") throw new Error(result.is);
    expect(result.error).toBeInstanceOf(BoundaryError);
    expect(result.error).toMatchObject({ boundary: "model-server", code, retryable: false });
    expect(result.error.message).toContain("why");
  });

  test.each([
    ["Model model_1a2b not loaded", "unknown_model"],
    ["Model model_1a2b not loaded (likely stale request from previous server)", "unknown_model"],
    ["Training checkpoint not found in /ck/model_1a2b/one.tar.gz", "not_found"],
    ["LoRA rank 64 must be between 1 and 32", "bad_input"],
  ])("SkyRL has words only: %s", (detail, code) => {
    const result = answer(400, { detail });
    expect(result.is === "failed" && result.error).toMatchObject({ code });
  });

  test("our worker's codes count more than the status, and its field is named", () => {
    const result = answer(409, { detail: "at step 3", code: "step_mismatch", field: "expect_step" });
    expect(result.is === "failed" && result.error).toMatchObject({ code: "step_mismatch" });
    expect(result.is === "failed" && result.error.message).toContain("(expect_step)");
    const future = answer(200, { error: "at step 3", category: "user", detail: "at step 3", code: "step_mismatch" });
    expect(future.is === "failed" && future.error).toMatchObject({ code: "step_mismatch" });
  });

  test("a fenced holder learns that it is one", () => {
    const result = answer(409, { detail: "fence 1 is behind 2", code: "fenced" });
    expect(result.is === "failed" && result.error).toBeInstanceOf(FencedError);
  });

  test("5xx and 429 may pass, except out of memory", () => {
    expect(answer(500, { detail: "x" })).toMatchObject({ is: "retry", retryAfterMs: null });
    expect(answer(503, "<html>", "2")).toMatchObject({ is: "retry", retryAfterMs: 2000 });
    expect(answer(429, { detail: "full", code: "busy" }, "4")).toMatchObject({ is: "retry", retryAfterMs: 4000 });
    expect(answer(500, { detail: "peak 9 GB", code: "oom" })).toMatchObject({ is: "failed", error: { code: "oom" } });
  });

  test("a body that is no JSON is a broken server, not an empty answer", () => {
    expect(answer(200, '{"sequences":[{"tok')).toMatchObject({ is: "retry", error: { code: "bad_answer" } });
  });

  test("validation details of other servers are kept as text", () => {
    const result = answer(422, { detail: [{ loc: ["body", "seq_id"], msg: "missing" }] });
    expect(result.is === "failed" && result.error.message).toContain("seq_id");
  });

  test("no room for a token is a full context; another setting that is too small is a bad request", () => {
    const refused = (field: string) => answer(422, { detail: "must be at least 1", code: "bad_input", field });
    expect(refused("sampling_params.max_tokens")).toMatchObject({ error: { code: "context_full" } });
    expect(refused("sampling_params.top_k")).toMatchObject({ error: { code: "bad_input" } });
    expect(refused("sampling_params.min_tokens")).toMatchObject({ error: { code: "bad_input" } });
  });
});
