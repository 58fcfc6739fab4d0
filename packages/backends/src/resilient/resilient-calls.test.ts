/** Fault 33 as a class, in virtual time: what a server says, and when it is asked again. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ResilientCalls, type Wait } from "./resilient-calls.ts";
import type { RetryPolicy, Try } from "./retry-policy.ts";

const policy: RetryPolicy = {
  maxTries: 6,
  tryMs: null,
  totalMs: 120_000,
  outageMs: null,
  firstPauseMs: 100,
  maxPauseMs: 8_000,
  maxRetryAfterMs: 60_000,
};
const retry = (code: string, options: { retryAfterMs?: number; down?: boolean } = {}): Try<string> => ({
  is: "retry",
  error: new BoundaryError("model-server", code, code, { retryable: true }),
  retryAfterMs: options.retryAfterMs ?? null,
  down: options.down ?? false,
});
const failed = (code: string): Try<string> => ({ is: "failed", error: new BoundaryError("model-server", code, code) });
const done: Try<string> = { is: "done", value: "answer" };

interface World {
  readonly answers: (asked: { readonly target: string; readonly atMs: number; readonly n: number }) => Try<string>;
  readonly targets?: readonly string[];
  readonly change?: Partial<RetryPolicy>;
  readonly random?: () => number;
  readonly threshold?: number;
}

/** Virtual time: sleepers wake in order, and only when nobody has anything else to do. */
function world({ answers, targets = ["one"], change = {}, random = () => 0, threshold = 1_000 }: World) {
  let now = 0;
  const sleepers: { readonly at: number; readonly wake: () => void }[] = [];
  const asked: { target: string; atMs: number }[] = [];
  const waits: Wait[] = [];
  const [first = "one", ...others] = targets;
  const calls = new ResilientCalls<{ name: string }>({
    targets: [{ name: first }, ...others.map((name) => ({ name }))],
    policy: { ...policy, ...change },
    breaker: { threshold, openMs: 1_000, maxOpenMs: 4_000 },
    retryableAfter: false,
    now: () => now,
    wallNow: () => 1e12 + now,
    random,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        sleepers.push({ at: now + ms, wake: resolve });
      }),
  });
  const run = async () => {
    for (let idle = 0; idle < 20; idle++) await Promise.resolve();
    while (sleepers.length > 0) {
      sleepers.sort((a, b) => a.at - b.at);
      const next = sleepers.shift();
      now = Math.max(now, next?.at ?? now);
      next?.wake();
      for (let idle = 0; idle < 20; idle++) await Promise.resolve();
    }
  };
  const call = (affinityKey = "rollout", options: { signal?: AbortSignal; probe?: boolean } = {}) =>
    calls.call({
      affinityKey,
      ...options,
      onWait: (wait) => waits.push(wait),
      attempt: async ({ name }) => {
        asked.push({ target: name, atMs: now });
        return answers({ target: name, atMs: now, n: asked.length });
      },
    });
  const outcome = async (calling: Promise<string>) => {
    const settled = calling.catch((error: unknown) => error as BoundaryError);
    await run();
    return settled;
  };
  return { call, run, outcome, asked, waits, pass: (ms: number) => (now += ms) };
}

describe("Retry-After", () => {
  test.each([4_000, 6_000])("is waited out: %d ms, with jitter on top, and people can see it", async (retryAfterMs) => {
    for (const chance of [0, 0.5, 0.99]) {
      const made = world({
        answers: ({ n }) => (n === 1 ? retry("rate_limited", { retryAfterMs }) : done),
        random: () => chance,
      });
      expect(await made.outcome(made.call())).toBe("answer");
      const [, again] = made.asked;
      expect(again?.atMs).toBeGreaterThanOrEqual(retryAfterMs);
      expect(again?.atMs).toBeLessThanOrEqual(retryAfterMs + 1_000);
      expect(made.waits[0]).toMatchObject({ reason: "rate_limited" });
      expect(made.waits[0]?.untilMs).toBeGreaterThanOrEqual(1e12 + retryAfterMs);
    }
  });

  test("of two weeks fails at once, and says so", async () => {
    const made = world({ answers: () => retry("rate_limited", { retryAfterMs: 1_209_600_000 }) });
    const error = await made.outcome(made.call());
    expect(error).toMatchObject({ code: "rate_limited", retryable: false, retryAfterMs: 1_209_600_000 });
    expect(String(error)).toContain("336.0 h");
    expect(made.asked).toHaveLength(1);
    // Others learn it without asking.
    expect(await made.outcome(made.call("another"))).toMatchObject({ code: "rate_limited" });
    expect(made.asked).toHaveLength(1);
    // Not for ever: the word of a server that was mended since is looked at again, once a minute at most.
    made.pass(60_001);
    await made.outcome(made.call("a third"));
    expect(made.asked).toHaveLength(2);
  });

  test("32 rollouts hit at once: nobody asks inside the forbidden time, and they come back spread out", async () => {
    let seed = 1;
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const made = world({
      answers: ({ atMs }) => (atMs < 4_000 ? retry("rate_limited", { retryAfterMs: 4_000 - atMs }) : done),
      random,
      change: { firstPauseMs: 1_000 },
    });
    const all = Array.from({ length: 32 }, (_, rollout) => made.call(`rollout-${rollout}`));
    await made.run();
    expect(await Promise.all(all)).toHaveLength(32);
    const early = made.asked.filter(({ atMs }) => atMs > 0 && atMs < 4_000);
    expect(early).toEqual([]);
    expect(new Set(made.asked.slice(32).map(({ atMs }) => Math.round(atMs))).size).toBeGreaterThan(16);
  });
});

test("pauses double with jitter, and tries are bounded", async () => {
  const made = world({ answers: () => retry("internal") });
  const error = await made.outcome(made.call());
  expect(error).toMatchObject({ code: "internal", retryable: false });
  expect((error as Error).message).toContain("6 tries");
  expect(made.asked.map(({ atMs }) => atMs)).toEqual([0, 50, 150, 350, 750, 1_550]);
  expect((error as BoundaryError).cause).toMatchObject({ code: "internal" });
});

test("time in all is bounded, whatever the number of tries", async () => {
  const made = world({ answers: () => retry("internal"), change: { maxTries: 1_000, totalMs: 3_000 } });
  expect(await made.outcome(made.call())).toMatchObject({ code: "internal" });
  expect(Math.max(...made.asked.map(({ atMs }) => atMs))).toBeLessThan(3_000);
});

test("what can't be cured is not repeated", async () => {
  const made = world({ answers: () => failed("unauthorised"), targets: ["one", "two"] });
  expect(await made.outcome(made.call())).toMatchObject({ code: "unauthorised" });
  expect(made.asked).toHaveLength(1);
});

describe("several endpoints", () => {
  const targets = ["one", "two", "three"];

  test("a rollout stays on its own, and others are spread", async () => {
    const made = world({ answers: () => done, targets });
    for (let turn = 0; turn < 5; turn++) await made.outcome(made.call("rollout-a"));
    expect(new Set(made.asked.map(({ target }) => target)).size).toBe(1);
    for (let rollout = 0; rollout < 30; rollout++) await made.outcome(made.call(`rollout-${rollout}`));
    expect(new Set(made.asked.map(({ target }) => target)).size).toBe(3);
  });

  test("falls over at once to the next choice, and comes back when its own answers again", async () => {
    const made = world({ answers: () => done, targets });
    await made.outcome(made.call());
    const [home] = made.asked.map(({ target }) => target);
    const away = world({
      answers: ({ target, atMs }) => (target === home && atMs < 500 ? retry("unreachable", { down: true }) : done),
      targets,
    });
    expect(await away.outcome(away.call())).toBe("answer");
    expect(away.asked.map(({ atMs }) => atMs)).toEqual([0, 0]);
    away.pass(5_000);
    await away.outcome(away.call());
    expect(away.asked.at(-1)?.target).toBe(home);
  });

  test("one that forbids for two weeks is left alone while others answer", async () => {
    const made = world({
      answers: ({ target }) => (target === "one" ? retry("rate_limited", { retryAfterMs: 1_209_600_000 }) : done),
      targets: ["one", "two"],
    });
    for (let rollout = 0; rollout < 20; rollout++) expect(await made.outcome(made.call(`r${rollout}`))).toBe("answer");
    expect(made.asked.filter(({ target }) => target === "one").length).toBeLessThanOrEqual(1);
  });

  test("tries are bounded over all of them together", async () => {
    const made = world({ answers: () => retry("unreachable", { down: true }), targets });
    await made.outcome(made.call());
    expect(made.asked).toHaveLength(policy.maxTries);
  });
});

describe("circuit breaker", () => {
  const change = { maxTries: Number.POSITIVE_INFINITY, totalMs: 20_000 };

  test("a dead endpoint is asked once a window, however many wait, and all go on once it answers", async () => {
    const backAt = 6_000;
    const made = world({
      answers: ({ atMs }) => (atMs < backAt ? retry("unreachable", { down: true }) : done),
      change,
      threshold: 5,
    });
    const all = Array.from({ length: 100 }, (_, rollout) => made.call(`r${rollout}`));
    await made.run();
    expect(await Promise.all(all)).toHaveLength(100);
    // The first hundred were under way together; after that one probe a window.
    expect(made.asked.filter(({ atMs }) => atMs > 0 && atMs < backAt).length).toBeLessThan(8);
  });

  test("a probe goes past it and closes it", async () => {
    let up = false;
    const made = world({ answers: () => (up ? done : retry("unreachable", { down: true })), change, threshold: 2 });
    await made.outcome(made.call());
    up = true;
    expect(await made.outcome(made.call("x", { probe: true }))).toBe("answer");
    const before = made.waits.length;
    expect(await made.outcome(made.call())).toBe("answer");
    expect(made.waits).toHaveLength(before);
  });
});

test("an abort ends a pause with the signal's own reason", async () => {
  const made = world({ answers: () => retry("rate_limited", { retryAfterMs: 30_000 }) });
  const stop = new AbortController();
  const calling = made.call("rollout", { signal: stop.signal });
  const settled = calling.catch((error: unknown) => error);
  for (let idle = 0; idle < 50; idle++) await Promise.resolve();
  expect(made.waits).toHaveLength(1);
  stop.abort(new Error("the run was stopped"));
  expect(await settled).toMatchObject({ message: "the run was stopped" });
  expect(made.asked).toHaveLength(1);
});

test("a try that takes too long counts as no answer", async () => {
  const calls = new ResilientCalls({
    targets: [{ name: "http://slow" }],
    policy: { ...policy, tryMs: 10, maxTries: 2, firstPauseMs: 1 },
    breaker: { threshold: 10, openMs: 1, maxOpenMs: 1 },
    retryableAfter: false,
  });
  const calling = calls.call({
    affinityKey: "",
    attempt: (_, signal) =>
      new Promise<never>((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
  });
  await expect(calling).rejects.toMatchObject({ code: "timeout", boundary: "model-server" });
});

test("whatever servers answer: tries bounded, no forbidden time broken, every call ends", async () => {
  const answer = fc.oneof(
    fc.constant(done),
    fc.constant(retry("internal")),
    fc.constant(retry("unreachable", { down: true })),
    fc.constant(failed("bad_input")),
    fc.integer({ min: 0, max: 100_000 }).map((retryAfterMs) => retry("rate_limited", { retryAfterMs })),
  );
  const scene = fc.record({
    answers: fc.array(answer, { minLength: 1, maxLength: 30 }),
    targets: fc.uniqueArray(fc.constantFrom("one", "two", "three"), { minLength: 1 }),
    chances: fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1 }),
    rollouts: fc.integer({ min: 1, max: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(scene, async ({ answers, targets, chances, rollouts }) => {
      // What was sent at the same moment as the request that heard it could not know.
      const forbidden = new Map<string, { readonly saidMs: number; readonly untilMs: number }>();
      let draws = 0;
      const made = world({
        targets,
        threshold: 3,
        random: () => chances[draws++ % chances.length] ?? 0,
        answers: ({ target, atMs, n }) => {
          const before = forbidden.get(target);
          if (before && atMs > before.saidMs) expect(atMs).toBeGreaterThanOrEqual(before.untilMs);
          const said = answers[n % answers.length] ?? done;
          if (said.is === "retry" && said.retryAfterMs !== null) {
            const untilMs = atMs + Math.min(said.retryAfterMs, policy.maxRetryAfterMs);
            if (untilMs > (before?.untilMs ?? 0)) forbidden.set(target, { saidMs: atMs, untilMs });
          }
          return said;
        },
      });
      const all = Promise.allSettled(Array.from({ length: rollouts }, (_, rollout) => made.call(`r${rollout}`)));
      await made.run();
      for (const settled of await all) {
        if (settled.status === "rejected") expect(settled.reason).toBeInstanceOf(BoundaryError);
      }
      expect(made.asked.length).toBeLessThanOrEqual(policy.maxTries * rollouts);
    }),
    { numRuns: 200 },
  );
});
