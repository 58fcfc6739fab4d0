/** The suites of `npm test`, in the order in which a failure is cheapest to see; `all` marks those of `test:all` only. */
import { randomInt } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { ensureWebBuilt } from "../../apps/cli/src/start/web-build.ts";
import { prepareEnvironment } from "../fidelity/environment.ts";
import { fidelitySuite } from "../fidelity/fidelity-suite.ts";
import { outsidePackages } from "../fidelity/packages.ts";
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
const endToEndConfig = "e2e/vitest.config.ts";
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
  return vitest(endToEndConfig, limitMs, filters);
}

/** What needs a trainer's own packages, from the environment that the comparisons use. */
async function withTrainer(name: "skyrl" | "verl", filter: string): Promise<SuiteResult> {
  const variable = `ROLLDECK_${name.toUpperCase()}_PYTHON`;
  process.env[variable] ??= await prepareEnvironment(name, (line) => say(`${line}\n`));
  return endToEnd(9 * minute, filter);
}

/** Of the tests of the whole product with its real model server: `npm test` is over in 20 minutes without the long ones. */
const realEveryTime = ["kill", "hostile-text", "template-parity", "sandboxes-ahead"].map(realTest);
const realSometimes = (): string[] =>
  readdirSync(path.join(root, "e2e/real"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => realTest(name.replace(/\.test\.ts$/, "")))
    .filter((name) => !realEveryTime.includes(name));
function realTest(name: string): string {
  return `e2e/real/${name}.test.ts`;
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
  "packages/fleet/src/docker",
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
  "packages/fleet/src/kubernetes",
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
  { name: "unit", all: false, run: () => vitest("vitest.config.ts", 15 * minute) },
  { name: "docker", all: false, run: () => vitest(inDocker, 8 * minute, everyTime) },
  { name: "pytest", all: false, needsPython: true, run: pytest },
  { name: "walks", all: false, needsPython: true, run: walks },
  {
    name: "chaos",
    all: false,
    needsPython: true,
    run: () => endToEnd(6 * minute, "e2e/chaos/short", "e2e/chaos/kill-reconcile", ...judges),
  },
  { name: "real", all: false, needsPython: true, run: () => endToEnd(5 * minute, ...realEveryTime) },
  { name: "compose", all: false, needsPython: true, run: () => endToEnd(2 * minute, "e2e/containers/compose") },
  { name: "real-long", all: true, needsPython: true, run: () => endToEnd(9 * minute, ...realSometimes()) },
  { name: "swe", all: true, needsPython: true, run: () => endToEnd(10 * minute, "e2e/swe") },
  {
    name: "kills",
    all: true,
    needsPython: true,
    run: () => endToEnd(9 * minute, "e2e/chaos/kill-worker", "e2e/chaos/kill-gpu-worker", "e2e/chaos/kill-async"),
  },
  // The official client and its cookbook, in the environment of `fidelity-cookbook`.
  { name: "sdk", all: true, needsPython: true, run: () => endToEnd(10 * minute, "e2e/sdk") },
  { name: "training", all: true, needsPython: true, run: () => endToEnd(8 * minute, "e2e/training") },
  { name: "fuzz", all: true, run: fuzz },
  { name: "sandboxes", all: true, run: () => vitest(inDocker, 10 * minute, sometimes) },
  { name: "images", all: true, run: () => vitest(endToEndConfig, 10 * minute, ["e2e/containers/images"]) },
  // Builds the GPU worker's image and runs it; and a real Ray, in an environment of its own.
  { name: "fleet-image", all: true, run: () => vitest(endToEndConfig, 10 * minute, ["e2e/fleet"]) },
  { name: "ray", all: true, run: () => vitest(endToEndConfig, 8 * minute, ["e2e/ray"]) },
  { name: "skyrl-server", all: true, needsPython: true, run: () => withTrainer("skyrl", "e2e/skyrl") },
  { name: "skyrl-bridge", all: true, needsPython: true, run: () => withTrainer("skyrl", "e2e/bridges/skyrl") },
  { name: "verl-bridge", all: true, needsPython: true, run: () => withTrainer("verl", "e2e/bridges/verl") },
  { name: "launched-trainers", all: true, needsPython: true, run: () => withTrainer("verl", "e2e/bridges/launched") },
  // One environment each, with its own Python.
  ...outsidePackages.map(
    (name): Suite => ({ name: `fidelity-${name}`, all: true, run: () => fidelitySuite(name, say) }),
  ),
];
