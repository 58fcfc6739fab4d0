import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { orAborted } from "./or-aborted.ts";

test("is the work's outcome where that comes first, and leaves no listener on the signal", async () => {
  const { signal } = new AbortController();
  expect(await orAborted(Promise.resolve("done"), signal)).toBe("done");
  await expect(orAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("ends with the signal's reason, before or while it waits, whatever becomes of the work", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  let fail = (_error: Error) => {};
  const waiting = orAborted(new Promise<never>((_resolve, reject) => (fail = reject)), signal);
  controller.abort("enough");
  await expect(waiting).rejects.toBe("enough");
  await expect(orAborted(Promise.reject(new Error("late")), signal)).rejects.toBe("enough");
  fail(new Error("late, too"));
  // An unhandled rejection would fail the run of the tests.
  await new Promise((resolve) => setImmediate(resolve));
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
