/**
 * One task folder in Harbor's shape, read whole but for its large parts. Invariants: an error names the file and the key; nothing
 * outside the folder is read; the mark changes with anything that the task says.
 */
import { createHash } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { isInside } from "../inside-folder.ts";
import { type ComposeFile, parseComposeFile } from "./compose-file.ts";
import { missingVariables, type OperatorVariables } from "./operator-variables.ts";
import { parseTaskFile, type StringMap, type TaskFile } from "./task-file.ts";
import { folderMark } from "./task-files.ts";

export interface HarborTask {
  /** The folder's name. */
  readonly name: string;
  /** Absolute, with every link followed. */
  readonly folder: string;
  readonly file: TaskFile;
  /** As the agent reads them, by step. */
  readonly instructions: readonly string[];
  readonly compose: ComposeFile | null;
  /** What each part said when it was opened; null where the task has none. */
  readonly marks: Readonly<Record<TaskPart, string | null>>;
  /** The same of a step's folders, as `<step>/tests`. */
  readonly stepMarks: Readonly<Record<string, string>>;
  readonly has: {
    readonly dockerfile: boolean;
    readonly testsDockerfile: boolean;
  };
  /** Eight hexadecimal digits of all that the task says. */
  readonly mark: string;
  readonly warnings: readonly string[];
}

export const taskParts = ["environment", "tests", "solution", "steps"] as const;
export type TaskPart = (typeof taskParts)[number];

/** Bytes of a text file of a task. */
const maxTextBytes = 1024 * 1024;

/** @throws InputError at `dataset` */
export async function readHarborTask(path: string, variables: OperatorVariables): Promise<HarborTask> {
  const folder = await realpath(path);
  const name = basename(folder);
  const text = await readText(folder, "task.toml", name);
  if (text === null) throw await noTaskFile(folder, name);
  const { file, warnings } = parseTaskFile(text, `${name}/task.toml`);
  const instructions = await readInstructions(folder, name, file);
  const compose = await readCompose(folder, name, variables);
  refuseVariables(file, `${name}/task.toml`, variables);
  const marks = {
    environment: await folderMark(join(folder, "environment"), folder),
    tests: await folderMark(join(folder, "tests"), folder),
    solution: await folderMark(join(folder, "solution"), folder),
    steps: await folderMark(join(folder, "steps"), folder),
  };
  const stepMarks = await readStepMarks(folder, file);
  const mark = createHash("sha256")
    .update(JSON.stringify([text, instructions, marks]))
    .digest("hex")
    .slice(0, 8);
  const has = {
    dockerfile: await isFile(folder, "environment/Dockerfile"),
    testsDockerfile: await isFile(folder, "tests/Dockerfile"),
  };
  await refuseUngraded(folder, name, file);
  const told = [...warnings, ...(compose?.warnings ?? []), ...notHere(name, file)];
  return {
    name,
    folder,
    file,
    instructions,
    compose: compose?.file ?? null,
    marks,
    stepMarks,
    has,
    mark,
    warnings: told,
  };
}

async function readStepMarks(folder: string, { steps }: TaskFile): Promise<Record<string, string>> {
  const marks: Record<string, string> = {};
  for (const { name } of steps) {
    if (name === null) continue;
    for (const part of ["tests", "solution", "workdir"]) {
      const mark = await folderMark(join(folder, "steps", name, part), folder);
      if (mark !== null) marks[`${name}/${part}`] = mark;
    }
  }
  return marks;
}

/** What a task asks for and gets no part of, in words. */
function notHere(name: string, { environment }: TaskFile): string[] {
  const where = `${name}/task.toml: environment`;
  const servers = environment.mcpServers.map(
    ({ name: server }) => `${where}.mcp_servers: ${server} is told to the agent, not mounted; mount it by agent.mcp`,
  );
  const skills = environment.skillsFolder === null ? [] : [`${where}.skills_dir: is told to the agent, nothing else`];
  return [...servers, ...skills];
}

/** Null where there is none. @throws InputError for one that is too large, no text, or leads out of the folder */
async function readText(folder: string, file: string, name: string): Promise<string | null> {
  const path = await realpath(join(folder, file)).catch(() => null);
  if (path === null) return null;
  if (!isInside(path, folder)) throw refusal(`${name}/${file} leads out of the task's folder`);
  const stats = await stat(path);
  if (!stats.isFile()) throw refusal(`${name}/${file} is no file`);
  if (stats.size > maxTextBytes) throw refusal(`${name}/${file} is larger than ${maxTextBytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
  } catch (cause) {
    if (cause instanceof TypeError) throw refusal(`${name}/${file} is no UTF-8`);
    throw cause;
  }
}

const refusal = (message: string, fix?: string): InputError =>
  new InputError([{ path: "dataset", message, ...(fix === undefined ? {} : { fix }) }]);

async function noTaskFile(folder: string, name: string): Promise<InputError> {
  if (!(await isFile(folder, "task.yaml"))) return refusal(`${name} holds no task.toml`);
  return refusal(
    `${name}/task.yaml: is a Terminal-Bench 1 task`,
    "convert it: instruction.md, task.toml, environment/, tests/test.sh and solution/solve.sh",
  );
}

const isFile = async (folder: string, file: string): Promise<boolean> =>
  (await stat(join(folder, file)).catch(() => null))?.isFile() ?? false;

/** Canary comments at the top are for crawlers, not for the agent. */
export const withoutCanary = (text: string): string =>
  text.replace(/^(?:\s*(?:<!--[^\n]*canary[^\n]*-->|#[^\n]*canary[^\n]*)[^\S\n]*\n)+\s*/iu, "");

async function readInstructions(folder: string, name: string, file: TaskFile): Promise<string[]> {
  const instructions: string[] = [];
  for (const step of file.steps) {
    const path = step.name === null ? "instruction.md" : `steps/${step.name}/instruction.md`;
    const text = await readText(folder, path, name);
    if (text === null) throw refusal(`${name} holds no ${path}`);
    const shown = withoutCanary(text);
    if (shown.trim() === "") throw refusal(`${name}/${path} is empty`);
    instructions.push(shown);
  }
  return instructions;
}

async function readCompose(folder: string, name: string, variables: OperatorVariables) {
  for (const file of ["docker-compose.yaml", "docker-compose.yml"]) {
    const text = await readText(folder, `environment/${file}`, name);
    if (text !== null) return parseComposeFile(text, `${name}/environment/${file}`, variables);
  }
  return null;
}

/** A step without a test of its own is graded by the task's. */
async function refuseUngraded(folder: string, name: string, file: TaskFile): Promise<void> {
  const shared = await isFile(folder, "tests/test.sh");
  for (const step of file.steps) {
    const own = step.name !== null && (await isFile(folder, `steps/${step.name}/tests/test.sh`));
    // The image of a separate verifier may bring its own.
    if (!shared && !own && !step.verifier.separate) {
      throw refusal(`${name} holds no ${step.name === null ? "tests/test.sh" : `steps/${step.name}/tests/test.sh`}`);
    }
  }
}

function refuseVariables(file: TaskFile, where: string, variables: OperatorVariables): void {
  const places: [string, StringMap][] = [
    ["environment.env", file.environment.variables],
    ["solution.env", file.solutionVariables],
    ...file.steps.flatMap(({ name, verifier }): [string, StringMap][] => [
      [name === null ? "verifier.env" : `steps.${name}.verifier.env`, verifier.variables],
      ["verifier.environment.env", verifier.environment?.variables ?? {}],
    ]),
  ];
  const issues = places.flatMap(([place, map]) =>
    Object.entries(map).flatMap(([key, text]) =>
      missingVariables(text, variables).map((missing) => ({
        path: "dataset",
        message: `${where}: ${place}.${key}: reads ${missing}, which is not there for tasks`,
        fix: `list it in ROLLDECK_TASK_ENV and set it, or leave the task out by the option exclude`,
      })),
    ),
  );
  if (issues.length > 0) throw new InputError(issues);
}
