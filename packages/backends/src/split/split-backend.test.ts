/** Where turns go while replicas come and go; the replicas are stubs, for what they say is another test's. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import { expect, test } from "vitest";
import { sampleRequest } from "../../testing/conformance.ts";
import { type Replica, splitBackend } from "./split-backend.ts";

const fails = (code: string) => () => {
  throw new BoundaryError("model-server", code, code, { retryable: true });
};

function scene(...names: string[]) {
  const asked: string[] = [];
  const broken = new Map<string, () => never>();
  let now = 0;
  const replica = (name: string): Replica => {
    const sample = async () => {
      asked.push(name);
      broken.get(name)?.();
      return { tokens: [1], logprobs: [0], stopReason: "stop" as const, policyVersion: 1, cacheHitTokens: 0 };
    };
    const load = async () => ({ running: 1, waiting: 2, cacheUse: name === "a" ? 0.9 : 0.1 });
    // @ts-expect-error: nothing else is asked of it
    return { name, backend: { sampler: () => ({ sample }), load } };
  };
  const all = new Map(names.map((name) => [name, replica(name)]));
  // @ts-expect-error: nothing is asked of it
  const trainer: StepBackend = {};
  const backend = splitBackend({ trainer, replicas: async () => [...all.values()], now: () => now });
  const sampler = backend.sampler({ samplingSessionId: "tinker://m/sampler_weights/serve-1" });
  const turn = async (key: string): Promise<string | undefined> => {
    await sampler.sample(sampleRequest({ affinityKey: key }), new AbortController().signal);
    return asked.at(-1);
  };
  return { all, asked, backend, broken, turn, later: (ms: number) => (now += ms) };
}

test("rollouts spread over the replicas, and each stays at its own", async () => {
  const { turn } = scene("a", "b");
  const first = [await turn("r1"), await turn("r2"), await turn("r3"), await turn("r4")];
  expect([...first].sort()).toEqual(["a", "a", "b", "b"]);
  expect([await turn("r1"), await turn("r2"), await turn("r3"), await turn("r4")]).toEqual(first);
});

test("a turn whose replica is gone is sampled by another, which it then stays at; others don't try the one that is gone", async () => {
  const { turn, broken, asked, later } = scene("a", "b");
  const home = (await turn("r1")) ?? "";
  const other = home === "a" ? "b" : "a";
  broken.set(home, fails("unreachable"));
  expect(await turn("r1")).toBe(other);
  asked.length = 0;
  await turn("r2");
  await turn("r3");
  expect(asked).toEqual([other, other]);
  broken.clear();
  later(2_000);
  expect(await turn("r1")).toBe(other);
});

test("a refusal is the caller's, and so is the absence of all", async () => {
  const { turn, broken, all } = scene("a", "b");
  for (const name of ["a", "b"]) broken.set(name, fails("busy"));
  await expect(turn("r1")).rejects.toMatchObject({ code: "busy" });
  for (const name of ["a", "b"]) broken.set(name, fails("unreachable"));
  await expect(turn("r1")).rejects.toMatchObject({ code: "unreachable", retryable: true });
  // All rest, but one of them may be back: nobody is refused without having been tried.
  broken.clear();
  expect(await turn("r1")).toBeDefined();
  all.clear();
  await expect(turn("r1")).rejects.toMatchObject({ code: "no_worker", retryable: true });
});

test("its load is that of all replicas together, the cache that of the fullest", async () => {
  expect(await scene("a", "b").backend.load?.()).toEqual({ running: 2, waiting: 4, cacheUse: 0.9 });
});
