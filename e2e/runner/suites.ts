/** The suites of `npm test`, in the order in which a failure is cheapest to see; `all` marks those of `test:all` only. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { z } from "zod";
import { preparePython } from "../../apps/cli/src/start/python-environment.ts";
import { runCommand } from "./run-command.ts";
import { emptyResult, type SuiteResult } from "./suite-result.ts";

export interface Suite {
  readonly name: string;
  readonly all: boolean;
  run(): Promise<SuiteResult>;
}

export const root = path.resolve(import.meta.dirname, "../..");
const minute = 60_000;
const bin = (name: string): string => path.join(root, "node_modules/.bin", name);

/** A gate is one check that passes or fails as a whole. */
async function gate(
  name: string,
  command: string,
  args: readonly string[],
  limitMs: number,
  env?: Record<string, string>,
): Promise<SuiteResult> {
  const result = emptyResult();
  const end = await runCommand(command, args, { cwd: root, env, limitMs });
  if (end.code === 0) result.passed = 1;
  else {
    result.failed = 1;
    result.failures.push(`${name}: ${end.timedOut ? `over its limit of ${limitMs / minute} min` : `exit ${end.code}`}`);
  }
  return result;
}

async function gates(list: readonly [name: string, command: string, args: readonly string[]][]): Promise<SuiteResult> {
  const total = emptyResult();
  for (const [name, command, args] of list) {
    const result = await gate(name, command, args, 8 * minute, {
      TURBO_TELEMETRY_DISABLED: "1",
      NEXT_TELEMETRY_DISABLED: "1",
    });
    total.passed += result.passed;
    total.failed += result.failed;
    total.failures.push(...result.failures);
  }
  return total;
}

const VitestReport = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().optional(),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
});

function readVitest(file: string): SuiteResult {
  const result = emptyResult();
  for (const suite of VitestReport.parse(JSON.parse(readFileSync(file, "utf8"))).testResults) {
    const where = path.relative(root, suite.name);
    if (suite.status === "failed" && !suite.assertionResults.some((test) => test.status === "failed")) {
      result.failed += 1;
      result.failures.push(`${where}: ${suite.message?.split("\n")[0] ?? "could not run"}`);
    }
    for (const test of suite.assertionResults) {
      if (test.status === "passed") result.passed += 1;
      else if (test.status === "failed") {
        result.failed += 1;
        result.failures.push(`${where}: ${test.fullName}`);
      } else result.skipped.push({ name: `${where}: ${test.fullName}`, reason: test.status });
    }
  }
  return result;
}

async function vitest(config: string, limitMs: number, filters: readonly string[] = []): Promise<SuiteResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-tests-"));
  const report = path.join(folder, "report.json");
  const args = [
    "run",
    "--config",
    config,
    "--reporter=dot",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...filters,
  ];
  const end = await runCommand(bin("vitest"), args, { cwd: root, limitMs });
  const result = existsSync(report) ? readVitest(report) : emptyResult();
  rmSync(folder, { recursive: true, force: true });
  if (end.timedOut || (end.code !== 0 && result.failed === 0)) {
    result.failed += 1;
    result.failures.push(`vitest ${config}: ${end.timedOut ? "over its limit" : `exit ${end.code}`}`);
  }
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
  const result = emptyResult();
  let interpreter: string;
  try {
    interpreter = await testPython();
  } catch (error) {
    result.failed = 1;
    result.failures.push(`pytest: ${error instanceof Error ? error.message : String(error)}`);
    return result;
  }
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
  if (existsSync(report)) addJunit(readFileSync(report, "utf8"), result);
  rmSync(folder, { recursive: true, force: true });
  if (end.code !== 0 && result.failed === 0) {
    result.failed = 1;
    result.failures.push(`pytest: ${end.timedOut ? "over its limit" : `exit ${end.code}`}`);
  }
  return result;
}

function addJunit(xml: string, result: SuiteResult): void {
  for (const match of xml.matchAll(/<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = /\bname="([^"]*)"/.exec(match[1] ?? "")?.[1] ?? "?";
    const body = match[3] ?? "";
    if (/<(failure|error)\b/.test(body)) {
      result.failed += 1;
      result.failures.push(`pytest: ${name}`);
    } else if (/<skipped\b/.test(body))
      result.skipped.push({ name: `pytest: ${name}`, reason: /message="([^"]*)"/.exec(body)?.[1] ?? "skipped" });
    else result.passed += 1;
  }
}

/** End-to-end suites use the same interpreter for the real GPU worker. */
async function endToEnd(limitMs: number, ...filters: string[]): Promise<SuiteResult> {
  process.env.ROLLDECK_PYTHON ??= await testPython();
  mkdirSync(path.join(root, "test-results"), { recursive: true });
  return vitest("e2e/vitest.config.ts", limitMs, filters);
}

/** Tests of what judges chaos. */
const judges = ["e2e/chaos/check-log", "e2e/chaos/follow-log"];

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
    run: () =>
      gates([
        // One program for all but pages and e2e: package by package (turbo) each would check its dependencies' sources again.
        ["types", bin("tsc"), ["--noEmit", "-p", "."]],
        ["types of pages", bin("tsc"), ["--noEmit", "-p", "apps/web"]],
        ["types of e2e", bin("tsc"), ["--noEmit", "-p", "e2e"]],
        ["biome", bin("biome"), ["check", "."]],
        ["boundaries", bin("depcruise"), ["apps", "packages", "--config", ".dependency-cruiser.cjs"]],
        ["knip", bin("knip"), []],
      ]),
  },
  { name: "unit", all: false, run: () => vitest("vitest.config.ts", 12 * minute) },
  { name: "docker", all: false, run: () => vitest(inDocker, 8 * minute, everyTime) },
  { name: "pytest", all: false, run: pytest },
  { name: "walks", all: false, run: () => endToEnd(8 * minute, "e2e/walks") },
  {
    name: "chaos",
    all: false,
    run: () => endToEnd(6 * minute, "e2e/chaos/short", "e2e/chaos/kill-reconcile", ...judges),
  },
  { name: "real", all: false, run: () => endToEnd(8 * minute, "e2e/real") },
  { name: "compose", all: false, run: () => endToEnd(2 * minute, "e2e/containers/compose") },
  { name: "swe", all: true, run: () => endToEnd(10 * minute, "e2e/swe") },
  {
    name: "kills",
    all: true,
    run: () => endToEnd(9 * minute, "e2e/chaos/kill-worker", "e2e/chaos/kill-gpu-worker", "e2e/chaos/kill-async"),
  },
  { name: "sandboxes", all: true, run: () => vitest(inDocker, 10 * minute, sometimes) },
  { name: "images", all: true, run: () => endToEnd(10 * minute, "e2e/containers/images") },
];
