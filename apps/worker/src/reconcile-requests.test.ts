import { expect, test } from "vitest";
import { ReconcileRequests } from "./reconcile-requests.ts";

test("a burst costs two jobs: the one under way and one for what came meanwhile", async () => {
  const added: string[] = [];
  const open: (() => void)[] = [];
  const requests = new ReconcileRequests(
    (runId) => {
      added.push(runId);
      return new Promise((resolve) => open.push(resolve));
    },
    () => undefined,
  );
  for (let n = 0; n < 512; n++) requests.request("a");
  requests.request("b");
  expect(added).toEqual(["a", "b"]);
  while (open.length > 0) {
    open.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(added).toEqual(["a", "b", "a"]);
  requests.request("a");
  expect(added).toEqual(["a", "b", "a", "a"]);
});

test("a queue that is away is reported, and the next request is sent again", async () => {
  const errors: unknown[] = [];
  let tries = 0;
  const requests = new ReconcileRequests(
    async () => {
      tries++;
      if (tries === 1) throw new Error("away");
    },
    (error) => errors.push(error),
  );
  requests.request("a");
  await new Promise((resolve) => setImmediate(resolve));
  requests.request("a");
  await new Promise((resolve) => setImmediate(resolve));
  expect([tries, errors.length]).toEqual([2, 1]);
});

test("what is committed before the reconcile of this process looks at the wake is its own business", async () => {
  const added: string[] = [];
  const requests = new ReconcileRequests(
    async (runId) => void added.push(runId),
    () => undefined,
  );
  await requests.here("a", async (looks) => {
    expect([requests.isHere("a"), requests.isHere("b")]).toEqual([true, false]);
    requests.request("a");
    requests.request("b");
    looks();
  });
  expect([added, requests.isHere("a")]).toEqual([["b"], false]);
  await requests.here("a", async (looks) => {
    looks();
    for (let n = 0; n < 512; n++) requests.request("a");
    expect(added).toEqual(["b"]);
  });
  expect(added).toEqual(["b", "a"]);
});

test("what two reconciles of one run leave is asked for once, when both have ended, and after a failure too", async () => {
  const added: string[] = [];
  const requests = new ReconcileRequests(
    async (runId) => void added.push(runId),
    () => undefined,
  );
  let end: () => void = () => undefined;
  const long = requests.here("a", (looks) => {
    looks();
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  const failing = requests.here("a", async () => {
    requests.request("a");
    throw new Error("the plan's own");
  });
  await expect(failing).rejects.toThrow("the plan's own");
  expect([added, requests.isHere("a")]).toEqual([[], true]);
  end();
  await long;
  expect(added).toEqual(["a"]);
});
