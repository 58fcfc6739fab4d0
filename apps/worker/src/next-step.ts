/**
 * Tasks of several steps: an answer that is not the last one gives way to what comes next, in the same sandbox. Invariant: a step is
 * counted by the call that answered it, kept beside the rollout: whatever tool gave the answer, whoever continues the rollout, and
 * however often that call is run.
 */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { GradingSandboxes, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { AgentView, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall } from "@rolldeck/contracts/segments";
import { z } from "zod";

interface StepScene {
  readonly task: Task;
  readonly instance: TaskInstance;
  readonly sandbox: Sandbox;
  readonly keep: GradingSandboxes["keep"];
  /** What was kept of the attempt under this name; null = nothing. */
  readonly kept: (name: string) => Promise<Uint8Array | null>;
}

const answersName = "step-answers.json";
/** Calls that ended a step, oldest first. */
const Answers = z.array(z.object({ turn: z.int(), index: z.int() }));
type AnswerCall = z.infer<typeof Answers>[number];

/** @returns the outcome itself, but for an answer that the task goes on after. Asked again when the call is run again. */
export async function nextStep(
  { task, instance, sandbox, keep, kept }: StepScene,
  { call, agent, outcome }: { readonly call: ToolCall; readonly agent: AgentView; readonly outcome: ToolOutcome },
  signal: AbortSignal,
): Promise<ToolOutcome> {
  if (outcome.finalAnswer === undefined || task.nextStep === undefined) return outcome;
  const own = { turn: agent.turn, index: call.index };
  const before = readAnswers(await kept(answersName)).filter((answer) => isEarlier(answer, own));
  const next = await task.nextStep(instance, sandbox, { done: before.length, keep, signal });
  if (next === null) return outcome;
  const content = new TextEncoder().encode(JSON.stringify([...before, own]));
  await keep({ name: answersName, mediaType: "application/json", content });
  return next;
}

const readAnswers = (bytes: Uint8Array | null): AnswerCall[] =>
  bytes === null ? [] : Answers.parse(JSON.parse(new TextDecoder().decode(bytes)));

const isEarlier = (one: AnswerCall, other: AnswerCall): boolean =>
  one.turn < other.turn || (one.turn === other.turn && one.index < other.index);
