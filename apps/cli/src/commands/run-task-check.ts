/** What `rolldeck task check` does: opens the data set, checks it in a runtime of this process, prints the report. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { SandboxRuntimeName } from "@rolldeck/contracts/run-config";
import { JsonObject } from "@rolldeck/contracts/segments";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { type CheckReport, type InstanceCheck, isBad } from "@rolldeck/tasks/check/check-report";
import { checkTask } from "@rolldeck/tasks/check/check-task";
import { tasks } from "@rolldeck/tasks/registry";
import { CommandFailure } from "./command-failure.ts";
import { plain, print, table } from "./output.ts";

export interface TaskCheckFlags {
  readonly task: string;
  readonly only?: string[];
  readonly runtime?: SandboxRuntimeName;
  readonly options?: string;
  readonly repeat: number;
  readonly concurrency: number;
  readonly json?: boolean;
}

/** Sets the exit code 1 when an instance is bad. @throws CommandFailure, InputError, NotFoundError */
export async function runTaskCheck(dataset: string, flags: TaskCheckFlags): Promise<void> {
  const task = await openTask(dataset, flags);
  const folder = await mkdtemp(join(tmpdir(), "rolldeck-check-"));
  const settings = parseSandboxSettings(process.env, process.cwd());
  const scene = { settings, deployment: `check-${process.pid}`, stateFolder: folder, onTrouble: reportTrouble };
  const runtimes = new SandboxRuntimes(scene);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new CommandFailure("stopped"));
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  try {
    const runtime = runtimes.get(flags.runtime ?? (task.sandbox === "process" ? "process" : settings.imageRuntime));
    const ailment = await runtime.ailment(stopping.signal);
    if (ailment !== null) throw new CommandFailure(`${runtime.name} sandboxes can't be used: ${ailment}`);
    const report = await checkTask(
      {
        task,
        runtime,
        repeat: flags.repeat,
        only: flags.only ?? [],
        concurrency: flags.concurrency,
        signal: stopping.signal,
        now: () => performance.now(),
        onProgress: (instanceId, message) => say(`${instanceId}  ${message}`),
        onChecked: (one, done, all) => say(`${done}/${all}  ${line(one)}`),
      },
      warningsOf(task),
    );
    // A check of nothing has shown nothing.
    if (report.bad > 0 || report.good === 0) process.exitCode = 1;
    print(flags.json === true, report, () => text(report));
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await runtimes.disconnect();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Progress goes beside the report. */
const say = (message: string): void => void process.stderr.write(`${plain(message)}\n`);
const reportTrouble = (message: string, error: unknown): void =>
  say(`${message}: ${error instanceof Error ? error.message : String(error)}`);

async function openTask(dataset: string, flags: TaskCheckFlags): Promise<Task> {
  const known: Readonly<Record<string, Task>> = tasks;
  const task = Object.hasOwn(known, flags.task) ? known[flags.task] : undefined;
  if (task === undefined) throw new NotFoundError("task", flags.task);
  if (task.open === undefined) throw new CommandFailure(`task ${flags.task} takes no data set`);
  const path = resolve(dataset);
  if (!existsSync(path)) throw new CommandFailure(`there is no ${path}`);
  return task.open({ dataset: path, options: { ...task.checkOptions, ...parseOptions(flags.options) } });
}

function parseOptions(text: string | undefined): JsonObject {
  if (text === undefined) return {};
  try {
    return JsonObject.parse(JSON.parse(text));
  } catch (cause) {
    throw new InputError([
      { path: "--options", message: `is no JSON object: ${cause instanceof Error ? cause.message : "?"}` },
    ]);
  }
}

const warningsOf = (task: Task): readonly string[] =>
  "warnings" in task && Array.isArray(task.warnings) ? task.warnings.map(String) : [];

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;
const sideText = (side: InstanceCheck["oracle"]): string =>
  side === null ? "n/a" : `${side.succeeded} of ${side.graded} passed`;

const line = (one: InstanceCheck): string =>
  `${isBad(one.state) ? "▲" : "●"} ${one.instanceId}  ${one.state}, ${seconds(one.durationMs)}${one.reason === null ? "" : `: ${one.reason}`}`;

function text(report: CheckReport): string {
  const rows = report.instances.map((one) => [
    isBad(one.state) ? "▲" : one.state === "good" ? "●" : "○",
    plain(one.instanceId),
    one.state,
    sideText(one.oracle),
    sideText(one.noOp),
    seconds(one.durationMs),
    plain(one.image),
    plain((one.reason ?? "").split("\n")[0] ?? "").slice(0, 160),
  ]);
  const columns = ["", "instance", "state", "oracle", "no-op", "time", "image", "reason"];
  const warnings = report.warnings.map((warning) => `○ ${plain(warning)}`);
  const unsolved = report.unsolved === 0 ? "" : `, ${report.unsolved} without a solution`;
  return [table(columns, rows), ...warnings, `${report.good} good, ${report.bad} bad${unsolved}`].join("\n");
}
