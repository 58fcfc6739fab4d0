/**
 * The tasks of a run's task sets, opened over their data sets and options. Invariants: equal task sets share one opened task;
 * a data set that changed on disk is opened anew (of folders below its own a moment later); what a config asks wrongly is an
 * InputError that names its field.
 */
import { createHash } from "node:crypto";
import { lstat, readdir, stat } from "node:fs/promises";
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
  /** Milliseconds of a steady clock. */
  readonly now?: () => number;
}

const maxKept = 64;

export class OpenedTasks {
  readonly #options: OpenedTasksOptions;
  readonly #opened = new Map<string, Promise<Task>>();
  readonly #looks = new Map<string, { readonly marks: Promise<string>; until: number }>();

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
    const stamp = dataset === null ? null : [await stampOf(dataset), await this.#marksBelow(dataset)];
    const key = JSON.stringify([set.name, dataset, stamp, set.options]);
    return this.#once(key, task.open.bind(task), { dataset, options: set.options });
  }

  /** Looked at again after a second, or fifty times what the look took: every stage of every rollout asks. */
  #marksBelow(path: string): Promise<string> {
    const now = this.#options.now ?? (() => performance.now());
    const known = this.#looks.get(path);
    if (known !== undefined && now() < known.until) return known.marks;
    const startedAt = now();
    const look = { marks: marksBelow(path), until: Number.POSITIVE_INFINITY };
    const oldest = this.#looks.keys().next();
    if (this.#looks.size >= maxKept && !oldest.done) this.#looks.delete(oldest.value);
    this.#looks.set(path, look);
    const ended = (): void => {
      look.until = now() + Math.max(1000, 50 * (now() - startedAt));
    };
    look.marks.then(ended, () => this.#looks.delete(path));
    return look.marks;
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

const maxMarked = 20_000;

/** Changes whenever a file of the folders below this one does, of the first so many; links are not followed. */
async function marksBelow(path: string): Promise<string> {
  const hash = createHash("sha256");
  let left = maxMarked;
  const visit = async (folder: string): Promise<void> => {
    const names = (await readdir(folder).catch(() => [])).sort().slice(0, left);
    left -= names.length;
    const found = await Promise.all(names.map((name) => lstat(join(folder, name)).catch(() => null)));
    for (const [at, name] of names.entries()) {
      const it = found[at];
      if (it?.isDirectory()) await visit(join(folder, name));
      else if (folder !== path) hash.update(`${join(folder, name)} ${it?.mtimeMs} ${it?.size} ${it?.ino}\n`);
    }
  };
  await visit(path);
  return hash.digest("hex");
}

/** Changes whenever the file, or a file of the folder, does; of what lies deeper it sees nothing. */
async function stampOf(path: string): Promise<string> {
  const own = await stat(path);
  if (!own.isDirectory()) return `${own.mtimeMs} ${own.size} ${own.ino}`;
  const names = (await readdir(path)).sort();
  const inner = await Promise.all(
    names.map(async (name) => [name, await stat(join(path, name)).catch(() => null)] as const),
  );
  return inner.map(([name, it]) => `${name} ${it?.mtimeMs} ${it?.size} ${it?.ino}`).join("\n");
}
