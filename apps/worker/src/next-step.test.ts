import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { NewEvidence, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { AgentView, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { expect, test } from "vitest";
import { nextStep } from "./next-step.ts";

const signal = new AbortController().signal;
const instance: TaskInstance = { instanceId: "i", split: "train", index: 0, state: {} };
const answer: ToolOutcome = { output: "", finalAnswer: "done" };

/** A task of three steps and what one attempt keeps. */
function rollout() {
  const asked: number[] = [];
  const files = new Map<string, Uint8Array>();
  const task = {
    nextStep: async (_instance: TaskInstance, _sandbox: Sandbox, { done }: { done: number }) => {
      asked.push(done);
      return done < 2 ? { output: `step ${done + 2}` } : null;
    },
  } as unknown as Task;
  const scene = {
    task,
    instance,
    sandbox: {} as Sandbox,
    keep: async ({ name, content }: NewEvidence) => void files.set(name, content),
    kept: async (name: string) => files.get(name) ?? null,
  };
  /** The calls before it are whatever they are: they say nothing of steps. */
  const call = (turn: number, name: string, outcome: ToolOutcome = answer, index = 0) => {
    const calls = Array.from({ length: turn }, () => ({ name, arguments: {}, failed: false }));
    const agent: AgentView = { turn, maxTurns: 50, contextTokens: 0, maxContextTokens: 100, calls };
    return nextStep(scene, { call: { index, name, arguments: {}, raw: "" }, agent, outcome }, signal);
  };
  return { call, asked };
}

test("a tool that answers in some of its calls ends a step with those alone", async () => {
  const { call, asked } = rollout();
  for (const turn of [0, 1, 2]) expect(await call(turn, "bash", { output: "a file" })).toEqual({ output: "a file" });
  expect(await call(3, "bash")).toEqual({ output: "step 2" });
  await call(4, "bash", { output: "a file" });
  expect(await call(5, "bash")).toEqual({ output: "step 3" });
  expect(await call(6, "bash")).toEqual(answer);
  expect(asked).toEqual([0, 1, 2]);
});

test("steps that were answered with different tools are counted together", async () => {
  const { call, asked } = rollout();
  await call(1, "submit");
  await call(4, "finish");
  expect(await call(4, "submit", answer, 1)).toEqual(answer);
  expect(asked).toEqual([0, 1, 2]);
});

test("a call that is run again ends the same step again", async () => {
  const { call, asked } = rollout();
  await call(1, "finish");
  await call(3, "finish");
  expect(await call(3, "finish")).toEqual({ output: "step 3" });
  expect(await call(7, "finish")).toEqual(answer);
  expect(asked).toEqual([0, 1, 1, 2]);
});
