import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { timeLimit } from "./time-limit.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new AbortController().signal;
const now = () => Date.now();

test("the time ends the work, once, and says so", () => {
  const limit = timeLimit(1_000, never, now);
  vi.advanceTimersByTime(999);
  expect([limit.signal.aborted, limit.isOver()]).toEqual([false, false]);
  vi.advanceTimersByTime(1);
  expect([limit.signal.aborted, limit.isOver()]).toEqual([true, true]);
});

test("what is not the agent's work does not cost its time", async () => {
  const limit = timeLimit(1_000, never, now);
  vi.advanceTimersByTime(600);
  await limit.without(async () => void vi.advanceTimersByTime(5_000));
  expect(limit.isOver()).toBe(false);
  vi.advanceTimersByTime(399);
  expect(limit.isOver()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(limit.isOver()).toBe(true);
});

test("time that was not the agent's is given back, while it runs and while it stands still; what is over stays over", async () => {
  const limit = timeLimit(1_000, never, now);
  vi.advanceTimersByTime(900);
  limit.giveBack(500);
  vi.advanceTimersByTime(599);
  expect(limit.isOver()).toBe(false);
  await limit.without(async () => limit.giveBack(100));
  vi.advanceTimersByTime(100);
  expect(limit.isOver()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(limit.isOver()).toBe(true);
  limit.giveBack(10_000);
  expect([limit.isOver(), limit.signal.aborted, vi.getTimerCount()]).toEqual([true, true, 0]);
});

test("a stage that is stopped is not a time that is over", () => {
  const stage = new AbortController();
  const limit = timeLimit(1_000, stage.signal, now);
  stage.abort(new Error("the run is over"));
  vi.advanceTimersByTime(2_000);
  expect([limit.signal.aborted, limit.isOver()]).toEqual([true, false]);
});

test("work that outlives the limit sets no timer again", async () => {
  const limit = timeLimit(1_000, never, now);
  let finish = () => {};
  const work = limit.without(() => new Promise<void>((resolve) => (finish = resolve)));
  limit.end();
  finish();
  await work;
  expect(vi.getTimerCount()).toBe(0);
});

test("no limit, no end; an ended one lets its timer go", () => {
  const none = timeLimit(null, never, now);
  const ended = timeLimit(1_000, never, now);
  ended.end();
  vi.advanceTimersByTime(10_000);
  expect([none.isOver(), ended.isOver(), ended.signal.aborted]).toEqual([false, false, false]);
});
