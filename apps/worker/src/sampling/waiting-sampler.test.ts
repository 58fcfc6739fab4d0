import { BoundaryError } from "@rolldeck/contracts/errors";
import { fixedPrompt, type SampleRequest, type SampleResult } from "@rolldeck/contracts/ports/sampler";
import { describe, expect, test } from "vitest";
import type { Serving, WatchedRun } from "../run-watch.ts";
import { StageAbort } from "../stage-abort.ts";
import type { Wait } from "./run-waits.ts";
import { WaitingSampler } from "./waiting-sampler.ts";

const request: SampleRequest = {
  affinityKey: "r",
  prompt: fixedPrompt([1]),
  tools: [],
  maxTokens: 4,
  temperature: 1,
  topP: 1,
  topK: -1,
  seed: 0,
  stopTokens: [9],
};
const result: SampleResult = { tokens: [9], logprobs: [-1], stopReason: "stop", policyVersion: 40, cacheHitTokens: 0 };
const at = (version: number): Serving => ({ version, samplingSessionId: `s${version}`, bootId: "b" });
const away = (code = "unreachable", retryable = true) => new BoundaryError("model-server", code, code, { retryable });

function sampler(options: {
  /** Waits inside each try, milliseconds. */
  heldUpMs?: number;
  serving: (Serving | null | Error)[];
  answer: (serving: Serving) => SampleResult | Error;
  beforeTry?: () => void;
  maxAwayMs?: number;
}) {
  const clock = { now: 0 };
  const asked: string[] = [];
  const lost: number[] = [];
  const waits: Wait[] = [];
  const made = new WaitingSampler({
    runId: "run",
    watch: async (): Promise<WatchedRun> => {
      clock.now += 1_000;
      const next = options.serving.length > 1 ? options.serving.shift() : options.serving[0];
      if (next instanceof Error) throw next;
      return { runId: "run", status: "running", serving: next ?? null };
    },
    samplerFor: (serving, onWait) => ({
      sample: async () => {
        asked.push(serving.samplingSessionId);
        const heldUpMs = options.heldUpMs ?? 0;
        if (heldUpMs > 0) onWait({ untilMs: clock.now + heldUpMs, reason: "HTTP 429" });
        clock.now += heldUpMs;
        const answer = options.answer(serving);
        if (answer instanceof Error) throw answer;
        return answer;
      },
    }),
    beforeTry: options.beforeTry ?? (() => undefined),
    maxAwayMs: options.maxAwayMs ?? 60_000,
    pauseMs: 1,
    now: () => clock.now,
    wallNow: () => clock.now,
    onLost: (ms) => lost.push(ms),
    onWait: (wait) => waits.push(wait),
  });
  return { made, asked, lost, waits };
}
const signal = () => new AbortController().signal;

describe("a server that answers, but fails on this request", () => {
  test("is asked a few more times, then the attempt has failed with the server's own words", async () => {
    const { made, asked } = sampler({ serving: [at(1)], answer: () => away("internal"), maxAwayMs: 1e9 });
    await expect(made.sample(request, signal())).rejects.toThrow("internal");
    expect(asked).toHaveLength(6);
  });

  test("and one that is away in between starts the count again", async () => {
    let calls = 0;
    const { made } = sampler({
      serving: [at(1)],
      answer: () => {
        calls += 1;
        return calls > 12 ? result : away(calls % 4 === 0 ? "unreachable" : "internal");
      },
      maxAwayMs: 1e9,
    });
    await expect(made.sample(request, signal())).resolves.toMatchObject({ tokens: result.tokens });
  });
});

describe("a model that is away", () => {
  test("is waited for, and the turn carries the version that then serves", async () => {
    const { made, asked } = sampler({
      serving: [null, new Error("database restarts"), at(3), at(3), at(4)],
      answer: ({ version }) => (version === 3 ? away("not_found", false) : result),
    });
    expect(await made.sample(request, signal())).toEqual({ ...result, policyVersion: 4 });
    expect(asked).toEqual(["s3", "s3", "s4"]);
  });

  test("is given up on after the limit, with the cause", async () => {
    const { made } = sampler({ serving: [at(1)], answer: () => away(), maxAwayMs: 3_000 });
    const error = await made.sample(request, signal()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ boundary: "model-server", code: "away", retryable: false });
    expect((error as Error).cause).toMatchObject({ code: "unreachable" });
  });

  test("is not waited for at all when it says itself that it takes too long", async () => {
    const weeks = new BoundaryError("model-server", "busy", "quota", { retryable: true, retryAfterMs: 1_209_600_000 });
    const { made, asked } = sampler({ serving: [at(1)], answer: () => weeks });
    await expect(made.sample(request, signal())).rejects.toBe(weeks);
    expect(asked).toHaveLength(1);
  });

  test.each(["bad_input", "context_full", "unusable_sample", "unauthorised"])(
    "a %s is not waited out",
    async (code) => {
      const { made, asked } = sampler({ serving: [at(1)], answer: () => away(code, false) });
      await expect(made.sample(request, signal())).rejects.toMatchObject({ code });
      expect(asked).toHaveLength(1);
    },
  );
});

test("what went to the server's absence is told once each: failed tries, pauses, and waits inside a try", async () => {
  let calls = 0;
  const { made, lost, waits } = sampler({
    serving: [at(1)],
    heldUpMs: 3_000,
    answer: () => (++calls === 1 ? away() : result),
  });
  await made.sample(request, signal());
  // Held up inside the try that fails, the rest of that try, the pause after it, held up inside the one that succeeds.
  expect(lost).toEqual([3_000, 1_000, 1, 3_000]);
  expect(waits.map(({ reason }) => reason)).toEqual(["HTTP 429", "unreachable", "HTTP 429"]);
  expect(waits[1]?.awayMs).toBe(4_000);
});

test("an abort ends the wait with the abort's own reason", async () => {
  const controller = new AbortController();
  const { made } = sampler({ serving: [null], answer: () => result });
  const waiting = made.sample(request, controller.signal);
  controller.abort(new StageAbort("run-ended", "stopped"));
  await expect(waiting).rejects.toMatchObject({ kind: "run-ended" });
});

test("a worker that is to stop hands back before it samples", async () => {
  const { made, asked } = sampler({
    serving: [at(1)],
    answer: () => result,
    beforeTry: () => {
      throw new StageAbort("hand-back", "stopping");
    },
  });
  await expect(made.sample(request, signal())).rejects.toMatchObject({ kind: "hand-back" });
  expect(asked).toEqual([]);
});

test("and while the sampler itself waits for a server that is away", async () => {
  let pausing = false;
  const { made, asked } = sampler({
    serving: [at(1)],
    heldUpMs: 1_000,
    answer: () => {
      pausing = true;
      return away();
    },
    beforeTry: () => {
      if (pausing && asked.length === 2) throw new StageAbort("hand-back", "the run is pausing");
    },
  });
  await expect(made.sample(request, signal())).rejects.toMatchObject({ kind: "hand-back" });
  expect(asked).toHaveLength(2);
});
