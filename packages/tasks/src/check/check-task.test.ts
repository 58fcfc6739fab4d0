/** Checks of data sets that have nothing to check. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import { expect, test } from "vitest";
import { checkTask } from "./check-task.ts";

const nothing = (): never => {
  throw new Error("there is nothing to do");
};
const runtime: SandboxRuntime = {
  name: "none",
  isolation: "none",
  limits: [],
  ailment: async () => null,
  open: nothing,
  attach: nothing,
  renew: nothing,
  close: nothing,
  list: nothing,
  disconnect: async () => undefined,
};
const empty: Task = {
  name: "empty",
  description: "of nothing",
  sandbox: "none",
  tools: [],
  defaults: { maxTurns: 1, maxContextTokens: 1000 },
  size: () => 0,
  instance: nothing,
  messages: nothing,
  verify: nothing,
};

test("a data set without instances is told as that: a report of nothing looks like one without faults", async () => {
  const scene = { task: empty, runtime, only: [], concurrency: 1, repeat: 1, signal: AbortSignal.timeout(10_000) };
  const checking = checkTask({ ...scene, now: () => 0, onProgress: nothing, onChecked: nothing });
  await expect(checking).rejects.toThrow(/has no instances/);
});
