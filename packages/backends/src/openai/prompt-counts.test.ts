import { expect, test } from "vitest";
import { PromptCounts } from "./prompt-counts.ts";

test("a prompt that grows here and shrinks there is noted; other differences are the server's template", () => {
  const counts = new PromptCounts();
  expect(counts.see("r", 480, 470)).toBeNull();
  expect(counts.see("r", 551, 545)).toBeNull();
  expect(counts.see("r", 620, 448)).toMatchObject({ kind: "drift", message: expect.stringContaining("448 after 545") });
  // The agent itself shortened its context.
  expect(counts.see("r", 100, 90)).toBeNull();
  expect(counts.see("another", 700, 50)).toBeNull();
  expect(counts.see("r", 200, null)).toBeNull();
});

test("it remembers a bounded number of rollouts", () => {
  const counts = new PromptCounts();
  for (let rollout = 0; rollout < 20_000; rollout++) counts.see(`r${rollout}`, 10, 10);
  expect(counts.see("r0", 20, 5)).toBeNull();
  expect(counts.see("r19999", 20, 5)).not.toBeNull();
});
