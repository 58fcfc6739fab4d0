/** Tasks of several steps: an answer that is not the last one gives way to what comes next, in the same sandbox. */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { GradingSandboxes, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { AgentView, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { ToolCall } from "@rolldeck/contracts/segments";

interface StepScene {
  readonly task: Task;
  readonly instance: TaskInstance;
  readonly sandbox: Sandbox;
  readonly keep: GradingSandboxes["keep"];
}

/** @returns the outcome itself, but for an answer that the task goes on after. Asked again when the call is run again. */
export async function nextStep(
  { task, instance, sandbox, keep }: StepScene,
  { call, agent, outcome }: { readonly call: ToolCall; readonly agent: AgentView; readonly outcome: ToolOutcome },
  signal: AbortSignal,
): Promise<ToolOutcome> {
  if (outcome.finalAnswer === undefined || task.nextStep === undefined) return outcome;
  const done = agent.calls.filter(({ name, failed }) => name === call.name && !failed).length;
  return (await task.nextStep(instance, sandbox, { done, keep, signal })) ?? outcome;
}
