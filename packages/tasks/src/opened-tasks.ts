/**
 * The tasks of a run's task sets, opened over their data sets and options. Invariants: equal task sets share one opened task;
 * a data set that changed on disk is opened anew; what a config asks wrongly is an InputError that names its field.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import type { Task, TaskSource } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { resolveDataset } from "./resolve-dataset.ts";

export type TaskSet = Pick<RunConfig["taskSets"][number], "name" | "dataset" | "options">;

export interface OpenedTasksOptions {
  readonly tasks: Readonly<Record<string, Task>>;
  /** Folders that data sets resolve under. */
  readonly dataRoots: readonly string[];
}

const maxKept = 64;

export class OpenedTasks {
  readonly #options: OpenedTasksOptions;
  readonly #opened = new Map<string, Promise<Task>>();

  constructor(options: OpenedTasksOptions) {
    this.#options = options;
  }

  /**
   * @throws NotFoundError for a run or task set that names a task this server does not have, InputError at `taskSets[i].…` for
   * a data set or option that the task can't take
   */
  async of(config: Pick<RunConfig, "taskSets">, taskSet: number): Promise<Task> {
    const set = config.taskSets[taskSet];
    if (set === undefined) throw new NotFoundError("task set", String(taskSet));
    try {
      return await this.open(set);
    } catch (cause) {
      if (!(cause instanceof InputError)) throw cause;
      throw new InputError(cause.issues.map((issue) => ({ ...issue, path: `taskSets[${taskSet}].${issue.path}` })));
    }
  }

  /** All of a config's, in their order. */
  async all(config: Pick<RunConfig, "taskSets">): Promise<Task[]> {
    const opened: Task[] = [];
    for (const taskSet of config.taskSets.keys()) opened.push(await this.of(config, taskSet));
    return opened;
  }

  /** As `of`, with paths that begin at the task set. */
  async open(set: TaskSet): Promise<Task> {
    const { tasks, dataRoots } = this.#options;
    const task = Object.hasOwn(tasks, set.name) ? tasks[set.name] : undefined;
    if (task === undefined) throw new NotFoundError("task", set.name);
    if (task.open === undefined) return refuseSource(task, set);
    const dataset = set.dataset === null ? null : resolveDataset(set.dataset, dataRoots);
    const stamp = dataset === null ? null : await stampOf(dataset);
    const key = JSON.stringify([set.name, dataset, stamp, set.options]);
    return this.#once(key, task.open.bind(task), { dataset, options: set.options });
  }

  /** A failed attempt is not kept: the file may be put right while the process runs. */
  #once(key: string, open: NonNullable<Task["open"]>, source: TaskSource): Promise<Task> {
    const known = this.#opened.get(key);
    if (known !== undefined) return known;
    const opened = open(source);
    opened.catch(() => this.#opened.delete(key));
    const oldest = this.#opened.keys().next();
    if (this.#opened.size >= maxKept && !oldest.done) this.#opened.delete(oldest.value);
    this.#opened.set(key, opened);
    return opened;
  }
}

function refuseSource(task: Task, { dataset, options }: TaskSet): Task {
  const issues = Object.keys(options).map((key) => ({
    path: `options.${key.slice(0, 60)}`,
    message: `task ${task.name} has no options`,
    fix: "leave it out",
  }));
  if (dataset !== null) {
    issues.push({ path: "dataset", message: `task ${task.name} makes its own instances`, fix: "leave it out" });
  }
  if (issues.length > 0) throw new InputError(issues);
  return task;
}

/** Changes whenever the file, or a file of the folder, does. */
async function stampOf(path: string): Promise<string> {
  const own = await stat(path);
  if (!own.isDirectory()) return `${own.mtimeMs} ${own.size} ${own.ino}`;
  const names = (await readdir(path)).sort();
  const inner = await Promise.all(
    names.map(async (name) => [name, await stat(join(path, name)).catch(() => null)] as const),
  );
  return inner.map(([name, it]) => `${name} ${it?.mtimeMs} ${it?.size} ${it?.ino}`).join("\n");
}
