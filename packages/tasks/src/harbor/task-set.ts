/**
 * A data set of Harbor tasks: a folder of task folders (or one task's own folder), with `train` and `evaluate` folders or every n-th
 * task held out, or a packed Parquet file. Invariants: order is by name, the same everywhere; no task is in both splits; an instance
 * is named by its folder and by what the task says.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { InputError, type InputIssue } from "@rolldeck/contracts/errors";
import type { Split } from "@rolldeck/contracts/ports/task";
import { isInside } from "../inside-folder.ts";
import { type HarborTask, readHarborTask } from "./harbor-task.ts";
import type { OperatorVariables } from "./operator-variables.ts";
import { unpackSet } from "./packed-set.ts";

export interface TaskSetChoice {
  readonly heldOutEvery: number;
  /** Patterns of names with `*`; empty = all. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}
export interface TaskSetScene {
  readonly variables: OperatorVariables;
  /** Folder where packed tasks are unpacked; asked only for those. */
  readonly cache: () => string;
}

export interface HarborSet {
  readonly tasks: Readonly<Record<Split, readonly HarborTask[]>>;
  readonly warnings: readonly string[];
}

/** Issues told at once; a set may have thousands. */
const maxIssues = 20;

/** @param path absolute @throws InputError at `dataset` */
export async function openTaskSet(path: string, choice: TaskSetChoice, scene: TaskSetScene): Promise<HarborSet> {
  const folders = await splitFolders(path, choice, scene);
  const issues: InputIssue[] = [];
  const read = async (paths: readonly string[]): Promise<HarborTask[]> => {
    const tasks: HarborTask[] = [];
    for (const each of paths) {
      try {
        tasks.push(await readHarborTask(each, scene.variables));
      } catch (cause) {
        if (!(cause instanceof InputError)) throw cause;
        issues.push(...cause.issues);
      }
    }
    return tasks;
  };
  const tasks = { train: await read(folders.train), evaluate: await read(folders.evaluate) };
  if (issues.length > 0) throw new InputError(shorten(issues));
  const all = [...tasks.train, ...tasks.evaluate];
  if (all.length === 0) throw new InputError([{ path: "dataset", message: "no task of the data set is left" }]);
  const ids = new Set<string>();
  const twice = all.find((task) => ids.size === ids.add(idOf(task)).size);
  if (twice !== undefined) throw new InputError([{ path: "dataset", message: `${twice.name} is there twice` }]);
  return { tasks, warnings: all.flatMap(({ warnings }) => warnings) };
}

const shorten = (issues: readonly InputIssue[]): InputIssue[] =>
  issues.length <= maxIssues
    ? [...issues]
    : [
        ...issues.slice(0, maxIssues),
        {
          path: "dataset",
          message: `and ${issues.length - maxIssues} more`,
          fix: "leave tasks out by the option exclude",
        },
      ];

/** What an instance is called. */
export const idOf = ({ name, mark }: Pick<HarborTask, "name" | "mark">): string =>
  `${name.replaceAll(/[^A-Za-z0-9._-]/gu, "_").slice(0, 100)}-${mark}`;

async function splitFolders(
  path: string,
  choice: TaskSetChoice,
  scene: TaskSetScene,
): Promise<Record<Split, string[]>> {
  const stats = await stat(path);
  if (!stats.isDirectory()) return hold(chosen(await unpackSet(path, scene.cache()), choice), choice.heldOutEvery);
  if (await isTask(path)) return hold([path], choice.heldOutEvery);
  const [train, evaluate] = await Promise.all([splitFolder(path, "train"), splitFolder(path, "evaluate")]);
  if (train === null && evaluate === null) {
    const tasks = await taskFolders(path);
    if (tasks.length === 0) {
      throw new InputError([{ path: "dataset", message: "the folder holds no task: no folder in it has a task.toml" }]);
    }
    return hold(chosen(tasks, choice), choice.heldOutEvery);
  }
  return {
    train: train === null ? [] : chosen(await taskFolders(train), choice),
    evaluate: evaluate === null ? [] : chosen(await taskFolders(evaluate), choice),
  };
}

/** `train` or `evaluate` of the set, where it is a folder of tasks and no task. */
async function splitFolder(path: string, split: Split): Promise<string | null> {
  const folder = join(path, split);
  const isFolder = (await stat(folder).catch(() => null))?.isDirectory() ?? false;
  return isFolder && !(await isTask(folder)) ? folder : null;
}

const isTask = async (folder: string): Promise<boolean> => {
  for (const file of ["task.toml", "task.yaml"]) {
    if ((await stat(join(folder, file)).catch(() => null))?.isFile()) return true;
  }
  return false;
};

async function taskFolders(path: string): Promise<string[]> {
  const home = await realpath(path);
  const folders: string[] = [];
  for (const name of (await readdir(home)).sort()) {
    const folder = join(home, name);
    if (!(await isTask(folder))) continue;
    if (!isInside(await realpath(folder), home)) {
      throw new InputError([{ path: "dataset", message: `${name} leads out of the data set's folder` }]);
    }
    folders.push(folder);
  }
  return folders;
}

function chosen(folders: readonly string[], { include, exclude }: TaskSetChoice): string[] {
  const name = (folder: string): string => folder.split("/").at(-1) ?? folder;
  const asked = include.length === 0 ? [...folders] : folders.filter((each) => include.some(matches(name(each))));
  return asked.filter((each) => !exclude.some(matches(name(each))));
}

const matches =
  (name: string) =>
  (pattern: string): boolean =>
    new RegExp(`^${pattern.split("*").map(escaped).join(".*")}$`, "u").test(name);
const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/gu, (character) => `\\${character}`);

/** The n-th of every n is held out: 0 = none, 1 = all. */
function hold(folders: readonly string[], every: number): Record<Split, string[]> {
  const isHeld = (at: number): boolean => every > 0 && (at + 1) % every === 0;
  return { train: folders.filter((_, at) => !isHeld(at)), evaluate: folders.filter((_, at) => isHeld(at)) };
}
