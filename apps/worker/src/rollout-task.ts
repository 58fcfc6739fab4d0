/** The task side of a claimed rollout: its task, instance and the limits that apply. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Split, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { RunConfig } from "@rolldeck/contracts/run-config";

export interface InstanceRef {
  readonly task: string;
  readonly split: Split;
  readonly instanceIndex: number;
}

/** @throws BoundaryError("infrastructure") when the server no longer has the task or the instance. */
export function taskOf(
  tasks: Readonly<Record<string, Task>>,
  ref: InstanceRef,
): { readonly task: Task; readonly instance: TaskInstance } {
  const task = Object.hasOwn(tasks, ref.task) ? tasks[ref.task] : undefined;
  if (task === undefined) {
    throw new BoundaryError("infrastructure", "unknown_task", `this server has no task named ${ref.task}`);
  }
  try {
    return { task, instance: task.instance(ref.split, ref.instanceIndex) };
  } catch (cause) {
    const which = `instance ${ref.instanceIndex} of ${ref.task} (${ref.split})`;
    throw new BoundaryError("infrastructure", "unknown_instance", `${which} could not be made`, { cause });
  }
}

/** A task set's own limit wins; else the smaller of the agent's and the task's. */
export function maxTurnsOf(config: RunConfig, taskSet: number, task: Task): number {
  return config.taskSets[taskSet]?.maxTurns ?? Math.min(config.agent.maxTurns, task.defaults.maxTurns);
}

/** @throws BoundaryError("infrastructure") when the server no longer has one of them */
export function taskTools(tools: Readonly<Record<string, Tool>>, task: Task): Tool[] {
  return task.tools.map((name) => {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (tool === undefined) {
      throw new BoundaryError("infrastructure", "unknown_tool", `this server has no tool named ${name}`);
    }
    return tool;
  });
}

/** What the model is told of them. */
export const toolSpecs = (tools: readonly Tool[]): ToolSpec[] =>
  tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
