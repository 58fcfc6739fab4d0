/** What every adapter of the Sampler port must do, asked through the port over real HTTP. */
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sampler } from "@rolldeck/contracts/ports/sampler";
import { fixedPrompt } from "@rolldeck/contracts/ports/sampler";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { never, sampleRequest } from "./conformance.ts";

/** `error`: HTTP 500. `busy`: 429 with a Retry-After of 0. `cut`: the connection dies in the middle of the answer. */
export type ServerFault = "error" | "busy" | "reset" | "hang" | "garbage" | "unauthorised" | "context";
export interface StartedSampler {
  readonly sampler: Sampler;
  /** The next `times` requests for a sample meet this. */
  fail(fault: ServerFault, times?: number): void;
  /** Requests for samples that arrived. */
  requests(): number;
  /** Requests whose connection closed before their answer. */
  cancelled(): number;
  close(): Promise<void>;
}
export interface SamplerUnderTest {
  readonly name: string;
  /** Tokens are the text's own; there are no logprobs. */
  readonly hidesTokens: boolean;
  /** Its server samples the tokens of "ok" and the stop token 259, and stops after `maxTokens`. */
  start(): Promise<StartedSampler>;
}

export function describeSampler(subject: SamplerUnderTest): void {
  describe(`sampler ${subject.name}`, () => {
    let started: StartedSampler;
    beforeEach(async () => {
      started = await subject.start();
    });
    afterEach(() => started?.close());
    const sample = (changes: Parameters<typeof sampleRequest>[0] = {}, signal = never()) =>
      started.sampler.sample(sampleRequest(changes), signal);

    test("a finished sample: ids with logprobs, or neither kept up", async () => {
      const result = await sample();
      expect(result.stopReason).toBe("stop");
      expect(result.tokens.at(-1)).toBe(259);
      if (subject.hidesTokens) expect(result.logprobs).toBeNull();
      else expect(result.logprobs).toHaveLength(result.tokens.length);
      expect(result.notes ?? []).toEqual([]);
      expect(result.policyVersion).toBe(0);
    });

    test("a sample that used up its tokens is cut, and ends without a stop token", async () => {
      const result = await sample({ maxTokens: 1 });
      expect(result.stopReason).toBe("length");
      expect(result.tokens.at(-1)).not.toBe(259);
    });

    test.each(["error", "busy", "reset", "garbage"] as const)("after %s the request is made again", async (fault) => {
      started.fail(fault, 2);
      expect((await sample()).stopReason).toBe("stop");
      expect(started.requests()).toBe(3);
    });

    test("a refused key is final, and the message names no key", async () => {
      started.fail("unauthorised");
      const error = await sample().catch((caught: unknown) => caught);
      expect(error).toMatchObject({ boundary: "model-server", code: "unauthorised", retryable: false });
      expect(started.requests()).toBe(1);
    });

    test("a full context is its own reason, not a failure to repeat", async () => {
      started.fail("context");
      await expect(sample()).rejects.toMatchObject({
        boundary: "model-server",
        code: "context_full",
        retryable: false,
      });
      expect(started.requests()).toBe(1);
    });

    test("failures that last end the call as a model server's", async () => {
      started.fail("error", 1_000);
      const error = await sample().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(BoundaryError);
      expect(error).toMatchObject({ boundary: "model-server" });
    });

    test("an abort ends it at once with its own reason, and closes the connection", async () => {
      started.fail("hang");
      const stop = new AbortController();
      const sampling = sample({}, stop.signal);
      while (started.requests() === 0) await sleep(2);
      const reason = new Error("the run was stopped");
      stop.abort(reason);
      await expect(sampling).rejects.toBe(reason);
      while (started.cancelled() === 0) await sleep(2);
      await expect(sample({}, stop.signal)).rejects.toBe(reason);
      expect(started.requests()).toBe(1);
    });

    test("64 at once, with prompts of different lengths", async () => {
      const results = await Promise.all(
        Array.from({ length: 64 }, (_, rollout) => {
          const prompt = fixedPrompt(
            Array.from({ length: rollout + 1 }, () => 102),
            [{ role: "user", content: "f".repeat(rollout + 1) }],
          );
          return sample({ affinityKey: `rollout-${rollout}`, prompt });
        }),
      );
      expect(results.every(({ stopReason, notes }) => stopReason === "stop" && notes === undefined)).toBe(true);
    });
  });
}
