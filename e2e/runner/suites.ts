/** The suites of `npm test`, in the order in which a failure is cheapest to see; `all` marks those of `test:all` only. */
import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { ensureWebBuilt } from "../../apps/cli/src/start/web-build.ts";
import { gatesOf, runGates } from "./gates.ts";
import { resultOfJunit } from "./junit-report.ts";
import { runCommand } from "./run-command.ts";
import { addFailure, emptyResult, type SuiteResult } from "./suite-result.ts";
import { parseVitestReport, resultOf, slowestFiles } from "./vitest-report.ts";

export interface Suite {
  readonly name: string;
  readonly all: boolean;
  readonly needsPython?: true;
  run(): Promise<SuiteResult>;
}

export const root = path.resolve(import.meta.dirname, "../..");
const minute = 60_000;
const say = (text: string): void => {
  process.stdout.write(text);
};

async function vitest(
  config: string,
  limitMs: number,
  filters: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SuiteResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-tests-"));
  const file = path.join(folder, "report.json");
  const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${file}`];
  // Colours double the length of a log of which only the end may be kept.
  const colour = process.stdout.isTTY ? [] : ["--no-color"];
  const args = ["run", "--config", config, ...colour, ...reporters, ...filters];
  const end = await runCommand(path.join(root, "node_modules/.bin/vitest"), args, { cwd: root, env, limitMs });
  const report = existsSync(file) ? parseVitestReport(readFileSync(file, "utf8")) : null;
  rmSync(folder, { recursive: true, force: true });
  const result = report === null ? emptyResult() : resultOf(report, root);
  if (report !== null) say(`slowest: ${slowestFiles(report, root, 12)}\n`);
  if (end.timedOut || (end.code !== 0 && result.failed === 0))
    addFailure(result, `vitest ${config}: ${end.timedOut ? "over its limit" : `exit ${end.code}`}`);
  return result;
}

/** Interpreter for everything that needs Python, prepared once. */
let python: Promise<string> | null = null;
export function testPython(): Promise<string> {
  let last = "";
  python ??= preparePython({
    root,
    withTests: true,
    torch: undefined,
    env: process.env,
    onProgress: (progress) => {
      if (progress.step !== last) process.stdout.write(`python: ${progress.step}\n`);
      last = progress.step;
    },
  });
  return python;
}

async function pytest(): Promise<SuiteResult> {
  const interpreter = await testPython();
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-pytest-"));
  const report = path.join(folder, "report.xml");
  const end = await runCommand(
    interpreter,
    ["-m", "pytest", "-q", "-x", "--maxfail=20", "-p", "no:cacheprovider", `--junitxml=${report}`],
    {
      cwd: path.join(root, "infra/gpu-worker"),
      env: { HF_HUB_OFFLINE: "1" },
      limitMs: 10 * minute,
    },
  );
  const result = existsSync(report) ? resultOfJunit(readFileSync(report, "utf8")) : emptyResult();
  rmSync(folder, { recursive: true, force: true });
  if (end.code !== 0 && result.failed === 0)
    addFailure(result, `pytest: ${end.timedOut ? "over its limit" : `exit ${end.code}`}`);
  return result;
}

/** End-to-end suites use the same interpreter for the real GPU worker. */
async function endToEnd(limitMs: number, ...filters: string[]): Promise<SuiteResult> {
  process.env.ROLLDECK_PYTHON ??= await testPython();
  mkdirSync(path.join(root, "test-results"), { recursive: true });
  return vitest("e2e/vitest.config.ts", limitMs, filters);
}

/** Tests of what judges chaos. */
const judges = ["e2e/chaos/check-log", "e2e/chaos/follow-log"];

/** Two files at a time may not both build the pages. */
async function walks(): Promise<SuiteResult> {
  await ensureWebBuilt(root, () => {});
  return endToEnd(8 * minute, "e2e/walks");
}

/** Properties from a seed that was not tried before; the others of these files cost little. */
function fuzz(): Promise<SuiteResult> {
  const seed = String(randomInt(2 ** 31));
  say(`ROLLDECK_PROPERTY_SEED=${seed}\n`);
  return vitest("vitest.config.ts", 10 * minute, ["packages/"], { ROLLDECK_PROPERTY_SEED: seed });
}

const inDocker = "e2e/docker.vitest.config.ts";
/** Of the tests in Docker: containers themselves, the agent's shell in them, and grading. The others belong to `test:all`. */
const everyTime = [
  "docker/docker.docker",
  "docker/beside.docker",
  "docker/kill-processes",
  "shell.docker",
  "harbor-grading",
  "swe-grading",
];
const sometimes = [
  "docker/daemon-down",
  "docker/images",
  "docker/leftovers",
  "packages/sandbox/src/kubernetes",
  "packages/sandbox/src/process",
  "apps/sandbox-server",
  "apps/cli",
  "apps/api",
  "search.docker",
];

export const suites: readonly Suite[] = [
  {
    name: "gates",
    all: false,
    run: () => runGates(gatesOf(root), { cwd: root, limitMs: 8 * minute, say }),
  },
  { name: "unit", all: false, run: () => vitest("vitest.config.ts", 12 * minute) },
  { name: "docker", all: false, run: () => vitest(inDocker, 8 * minute, everyTime) },
  { name: "pytest", all: false, needsPython: true, run: pytest },
  { name: "walks", all: false, needsPython: true, run: walks },
  {
    name: "chaos",
    all: false,
    needsPython: true,
    run: () => endToEnd(6 * minute, "e2e/chaos/short", "e2e/chaos/kill-reconcile", ...judges),
  },
  { name: "real", all: false, needsPython: true, run: () => endToEnd(8 * minute, "e2e/real") },
  { name: "compose", all: false, needsPython: true, run: () => endToEnd(2 * minute, "e2e/containers/compose") },
  { name: "swe", all: true, needsPython: true, run: () => endToEnd(10 * minute, "e2e/swe") },
  {
    name: "kills",
    all: true,
    needsPython: true,
    run: () => endToEnd(9 * minute, "e2e/chaos/kill-worker", "e2e/chaos/kill-gpu-worker", "e2e/chaos/kill-async"),
  },
  { name: "fuzz", all: true, run: fuzz },
  { name: "sandboxes", all: true, run: () => vitest(inDocker, 10 * minute, sometimes) },
  { name: "images", all: true, needsPython: true, run: () => endToEnd(10 * minute, "e2e/containers/images") },
];
