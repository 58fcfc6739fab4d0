/** The task side of a claimed rollout: its task, instance and the limits that apply. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Split, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";

export interface InstanceRef {
  readonly config: RunConfig;
  readonly taskSet: number;
  readonly split: Split;
  readonly instanceIndex: number;
  /** What the instance was called when its rollouts were planned; absent = they are being planned. */
  readonly instanceId?: string;
}

/**
 * @throws BoundaryError("infrastructure") when the server no longer has the task, its data set or the instance, or has another one in
 *   its place: what was asked of one row is never graded by another
 */
export async function taskOf(
  tasks: Pick<OpenedTasks, "of">,
  ref: InstanceRef,
): Promise<{ readonly task: Task; readonly instance: TaskInstance }> {
  const task = await tasks.of(ref.config, ref.taskSet).catch((cause: unknown) => {
    throw notThere("task_not_opened", `task set ${ref.taskSet} could not be opened`, cause);
  });
  let instance: TaskInstance;
  try {
    instance = task.instance(ref.split, ref.instanceIndex);
  } catch (cause) {
    throw notThere(
      "unknown_instance",
      `instance ${ref.instanceIndex} of ${task.name} (${ref.split}) could not be made`,
      cause,
    );
  }
  if (ref.instanceId !== undefined && ref.instanceId !== instance.instanceId) {
    const message = `instance ${ref.instanceId} of ${task.name} is ${instance.instanceId} now: its data set was changed`;
    throw new BoundaryError("infrastructure", "instance_changed", message);
  }
  return { task, instance };
}

const notThere = (code: string, what: string, cause: unknown): BoundaryError => {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new BoundaryError("infrastructure", code, `${what}: ${why}`, { cause });
};

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
