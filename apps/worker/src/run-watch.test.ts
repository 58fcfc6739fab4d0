import { expect, test } from "vitest";
import { RunWatch, type WatchedRun } from "./run-watch.ts";

const running = (runId: string): WatchedRun => ({ runId, status: "running", serving: null });

function watch(read: (runIds: readonly string[]) => Promise<readonly WatchedRun[]>) {
  const clock = { now: 1_000 };
  const seen: string[][] = [];
  const runs = new RunWatch({
    read,
    watched: () => [],
    onRefresh: (list) => seen.push(list.map(({ runId }) => runId)),
    maxAgeMs: 500,
    now: () => clock.now,
    onError: () => undefined,
  });
  return { runs, clock, seen };
}

test("512 rollouts that ask at once cost one statement", async () => {
  let reads = 0;
  const { runs, seen } = watch(async (runIds) => {
    reads++;
    return runIds.map(running);
  });
  await runs.get("a");
  reads = 0;
  const answers = await Promise.all(Array.from({ length: 512 }, () => runs.get("a")));
  expect(reads).toBe(0);
  expect(new Set(answers.map((run) => run?.status))).toEqual(new Set(["running"]));
  expect(seen).toEqual([["a"]]);
});

test("what is older than its age is read again; a run without a row is null", async () => {
  let reads = 0;
  const { runs, clock } = watch(async (runIds) => {
    reads++;
    return runIds.filter((runId) => runId !== "gone").map(running);
  });
  expect(await runs.get("gone")).toBeNull();
  await runs.get("a");
  clock.now += 501;
  await runs.get("a");
  expect(reads).toBe(3);
});

test("a slow read is accepted however old it is when it comes", async () => {
  const { runs, clock } = watch(async (runIds) => {
    clock.now += 5_000;
    return runIds.map(running);
  });
  expect((await runs.get("a"))?.runId).toBe("a");
});

test("what a claim read is newer than the cache, and than a read that began before it", async () => {
  const release: (() => void)[] = [];
  const serving = (version: number) => ({ version, samplingSessionId: `s${version}`, bootId: "b" });
  const { runs, clock } = watch(async () => {
    await new Promise<void>((resolve) => release.push(resolve));
    return [{ runId: "a", status: "running", serving: serving(1) }];
  });
  const reading = runs.get("a");
  clock.now += 10;
  runs.learn("a", serving(2), runs.now());
  release.shift()?.();
  expect((await reading)?.serving?.version).toBe(2);
  runs.learn("a", serving(1), runs.now() - 5);
  expect((await runs.get("a"))?.serving?.version).toBe(2);
  // It ages as every other knowledge.
  clock.now += 501;
  const again = runs.get("a");
  while (release.length === 0) await new Promise((resolve) => setImmediate(resolve));
  release.shift()?.();
  expect((await again)?.serving?.version).toBe(1);
});

test("a run asked for while another read is under way is read next", async () => {
  const release: (() => void)[] = [];
  const asked: string[][] = [];
  const { runs } = watch(async (runIds) => {
    asked.push([...runIds]);
    await new Promise<void>((resolve) => release.push(resolve));
    return runIds.map(running);
  });
  const first = runs.get("a");
  const second = runs.get("b");
  release.shift()?.();
  await first;
  while (release.length === 0) await new Promise((resolve) => setImmediate(resolve));
  release.shift()?.();
  expect((await second)?.runId).toBe("b");
  expect(asked).toEqual([["a"], ["b"]]);
});
