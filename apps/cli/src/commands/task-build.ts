/** `rolldeck task build`: the offline SWE set, from sources of package registries. Runs on the operator's machine, without a server. */
import { readFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { print, table } from "./output.ts";

interface Flags {
  readonly out: string;
  readonly list?: string;
  readonly only?: string[];
  readonly base?: string;
  readonly runs: number;
  readonly json?: boolean;
}

/** @param task the command `rolldeck task` */
export function addTaskBuild(task: Command): void {
  task
    .command("build")
    .description("Build the offline SWE set: real bugs from Debian and PyPI sources, verified in Docker")
    .option("--out <folder>", "where rows and Harbor directories go", "datasets/swe-set")
    .option("--list <file>", "the list of tasks (default: infra/swe-set/tasks.yaml)")
    .option("--only <id...>", "only these tasks; others stay as they are")
    .option("--base <image>", "base image with Python, git and pytest (default: made here)")
    .option("--runs <n>", "runs of the tests before and after the fix; tests that disagree are left out", count, 3)
    .option("--json", "print JSON")
    .action(taskBuild);
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 100)
    throw new InvalidArgumentError("must be a whole number from 1 to 100");
  return value;
}

async function taskBuild(flags: Flags): Promise<void> {
  const root = process.env.ROLLDECK_ROOT ?? process.cwd();
  const stop = new AbortController();
  const end = (): void => stop.abort(new Error("interrupted"));
  process.once("SIGINT", end).once("SIGTERM", end);
  const { built, failed } = await build(root, flags, stop.signal);
  process.off("SIGINT", end).off("SIGTERM", end);
  if (failed.length > 0) process.exitCode = 1;
  print(flags.json === true, { built, failed }, () =>
    [
      table(
        ["task", "fail to pass", "pass to pass", "left out", "tests s", "image"],
        built.map((each) => [
          each.id,
          String(each.failToPass),
          String(each.passToPass),
          String(each.dropped),
          (each.testMs / 1000).toFixed(1),
          each.image,
        ]),
      ),
      ...failed.map(({ id, reason }) => `not built: ${id}: ${reason}`),
      `${built.length} built, ${failed.length} not built, in ${flags.out}`,
    ].join("\n"),
  );
}

async function build(root: string, flags: Flags, signal: AbortSignal) {
  const { InputError } = await import("@rolldeck/contracts/errors");
  const { readSetList } = await import("@rolldeck/tasks/offline-set/set-list");
  const { ownFolder } = await import("@rolldeck/tasks/own-folder");
  const { SandboxRuntimes } = await import("@rolldeck/sandbox/runtimes");
  const { parseSandboxSettings } = await import("@rolldeck/sandbox/settings");
  const { baseImage, ensureBaseImage } = await import("../task-build/base-image.ts");
  const { buildSet } = await import("../task-build/build-set.ts");
  const { DockerImages } = await import("../task-build/docker-images.ts");
  const set = join(root, "infra/swe-set");
  const entries = readSetList(await readFile(resolve(flags.list ?? join(set, "tasks.yaml")), "utf8"));
  const unknown = flags.only?.find((id) => !entries.some((entry) => entry.id === id));
  if (unknown !== undefined) throw new InputError([{ path: "--only", message: `the list has no task ${unknown}` }]);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const settings = parseSandboxSettings(process.env, process.cwd());
  const images = new DockerImages(settings.docker.socket);
  const packagesFile = join(set, "base-packages.txt");
  if (flags.base === undefined) await ensureBaseImage(images, { packagesFile, say, signal });
  const cache = ownFolder(join(tmpdir(), `rolldeck-task-build-${userInfo().uid}`));
  const onTrouble = (message: string): void => say(message);
  const runtimes = new SandboxRuntimes({
    settings,
    deployment: `task-build-${process.pid}`,
    stateFolder: cache,
    onTrouble,
  });
  try {
    return await buildSet(
      entries.filter(({ id }) => flags.only?.includes(id) ?? true),
      {
        out: resolve(flags.out),
        cache,
        debianSources: process.env.ROLLDECK_DEBIAN_SOURCES ? resolve(process.env.ROLLDECK_DEBIAN_SOURCES) : null,
        images,
        runtime: runtimes.get("docker"),
        base: flags.base ?? baseImage,
        gradeScript: await readFile(join(set, "grade.py"), "utf8"),
        runs: flags.runs,
        say,
        signal,
      },
    );
  } finally {
    await runtimes.disconnect();
  }
}
