/**
 * Tasks in Harbor's shape (Terminal-Bench 2 and what follows it): folders with an instruction, an image, tests that write a reward.
 * Steps share a sandbox and begin with a context of their own. Tests run in the agent's sandbox, or in one of their own where the
 * task says so.
 */
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { BoundaryError, InputError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Split, Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import { ownFolder } from "../own-folder.ts";
import { parseOptions } from "../parse-options.ts";
import { HarborRollout } from "./harbor-rollout.ts";
import type { HarborTask } from "./harbor-task.ts";
import { harborMessages } from "./messages.ts";
import { type OperatorVariables, operatorVariables } from "./operator-variables.ts";
import { HarborOptions, networkOf, toolsOf } from "./options.ts";
import { ProgramGuard } from "./program-guard.ts";
import { agentSandbox, verifierSandbox } from "./sandbox-spec.ts";
import { solveStep } from "./solve-step.ts";
import { idOf, openTaskSet } from "./task-set.ts";

export interface HarborScene {
  /** Read when a data set is opened. */
  readonly variables: () => OperatorVariables;
  /** Folder where packed tasks are unpacked. */
  readonly cache: () => string;
}

const needed = "harbor needs a data set: a folder of task folders, or a Parquet file of packed ones";

const unopened = {
  name: "harbor",
  description: "Tasks in Harbor's shape (Terminal-Bench 2): work in a sandbox that the task's own tests grade.",
  sandbox: "image",
  tools: toolsOf(HarborOptions.parse({})),
  defaults: { maxTurns: 100, maxContextTokens: 65_536 },
  size: () => 0,
  instance: () => {
    throw new RangeError(needed);
  },
  messages: () => {
    throw new RangeError(needed);
  },
  verify: async () => {
    throw new BoundaryError("verifier", "bad_instance", needed);
  },
} satisfies Task;

/** A harbor task that can say what is odd about an opened data set. */
export interface HarborSetTask extends Task {
  readonly warnings: readonly string[];
}

export const makeHarbor = (scene: HarborScene) =>
  ({
    ...unopened,
    open: async ({ dataset, options }): Promise<HarborSetTask> => {
      const parsed = parseOptions(HarborOptions, options);
      if (dataset === null) throw new InputError([{ path: "dataset", message: needed }]);
      const variables = scene.variables();
      const { tasks, warnings } = await openTaskSet(dataset, parsed, { variables, cache: scene.cache });
      const every = [...tasks.train, ...tasks.evaluate];
      // What can't be opened is told now, not by the first rollout.
      const spec = { variables, network: networkOf(parsed) };
      for (const task of every) {
        agentSandbox(task, spec);
        for (const step of task.file.steps) if (step.verifier.separate) verifierSandbox(task, step, spec);
      }
      return { ...overTasks(tasks, parsed, variables), warnings };
    },
  }) satisfies Task;

/** Of this user alone: what is unpacked is built and run. */
const ownCache = (environment: Readonly<Record<string, string | undefined>>): string =>
  environment.ROLLDECK_TASK_CACHE || ownFolder(join(tmpdir(), `rolldeck-tasks-${userInfo().uid}`));

export const harbor = makeHarbor({
  variables: () => operatorVariables(process.env.ROLLDECK_TASK_ENV, process.env),
  cache: () => ownCache(process.env),
});

function overTasks(
  tasks: Readonly<Record<Split, readonly HarborTask[]>>,
  options: HarborOptions,
  variables: OperatorVariables,
): Task {
  const every = [...tasks.train, ...tasks.evaluate];
  const byId = new Map(every.map((task) => [idOf(task), task]));
  const scene = { options, variables, guard: new ProgramGuard() };
  const taskOf = ({ instanceId }: TaskInstance): HarborTask => {
    const task = byId.get(instanceId);
    if (task !== undefined) return task;
    throw new BoundaryError("verifier", "bad_instance", `${instanceId} is no task of this data set`);
  };
  const rollout = (instance: TaskInstance): HarborRollout => new HarborRollout(taskOf(instance), scene);
  const steps = every.flatMap(({ file }) => file.steps);
  return {
    ...unopened,
    tools: toolsOf(options),
    // Hooks see the agent's processes, so its sandbox is left as it is until they ran.
    gradeInPlace: steps.some(({ verifier }) => !verifier.separate || verifier.collect.length > 0),
    size: (split) => tasks[split].length,
    instance: (split, index) => instanceOf(tasks[split], split, index),
    messages: (instance) => harborMessages(taskOf(instance), 0, options),
    sandboxFor: (instance) => agentSandbox(taskOf(instance), { variables, network: networkOf(options) }),
    maxRunMs: (instance) => agentTimeMs(taskOf(instance), options.timeoutMultiplier),
    setUp: (instance, sandbox, signal) => rollout(instance).setUp(sandbox, signal),
    nextStep: async (instance, sandbox, step) => {
      const outcome = await rollout(instance).nextStep(sandbox, step);
      if (outcome !== null) solving.set(sandbox, step.done + 1);
      return outcome;
    },
    collect: (instance, sandbox, signal) => rollout(instance).collect(sandbox, signal),
    verify: (instance, finished, grading) => rollout(instance).verify(finished, grading),
    solve: async (instance, sandbox, signal) => {
      const task = taskOf(instance);
      const step = task.file.steps[solving.get(sandbox) ?? 0];
      if (step !== undefined) await solveStep(task, step, variables, sandbox, signal);
    },
  };
}

/** Which step an oracle is at: it lives in one process from set-up to verdict. */
const solving = new WeakMap<Sandbox, number>();

function instanceOf(tasks: readonly HarborTask[], split: Split, index: number): TaskInstance {
  const task = tasks[index];
  if (task === undefined) throw new RangeError(`the data set has ${tasks.length} ${split} tasks, not ${index}`);
  const steps = task.file.steps.length;
  return { instanceId: idOf(task), split, index, state: { task: task.name, steps } };
}

/** Of all steps together; null when one has no limit. */
function agentTimeMs({ file }: HarborTask, multiplier: number): number | null {
  let sum = 0;
  for (const { agentTimeoutMs } of file.steps) {
    if (agentTimeoutMs === null) return null;
    sum += agentTimeoutMs * multiplier;
  }
  return sum;
}
