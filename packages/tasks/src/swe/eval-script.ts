/**
 * The script that runs an instance's tests in a fresh sandbox: the row's own, or one made of the test command of its repository. Its
 * exit code is that of the test command, so that it is known without the log, which the code under test can write into.
 */

import { endMark, exitCodeMark, startMark } from "./logs/read-test-log.ts";
import { patchFiles } from "./patch-files.ts";
import type { SweKind } from "./row.ts";
import { testCommandOf } from "./test-commands.ts";

export interface EvalScript {
  readonly text: string;
  /** Its exit code is the tests'; else only the log tells it. */
  readonly tellsExitCode: boolean;
  /** The command, for people. */
  readonly command: string;
}

interface Graded {
  readonly kind: SweKind;
  readonly repo: string;
  readonly version: string | null;
  readonly baseCommit: string | null;
  readonly testPatch: string;
  readonly evalScript: string | null;
  readonly failToPass: readonly string[];
}

/** Where the test patch lies in the sandbox that grades. */
export const testPatchPath = "/var/tmp/rolldeck-test.patch";

const variable = "ROLLDECK_TEST_EXIT_CODE";

/** @param folder of the repository */
export function evalScriptOf(row: Graded, folder: string): EvalScript {
  if (row.evalScript !== null) return ownScript(row.evalScript);
  return row.kind === "swe-smith" ? smithScript(row, folder) : tableScript(row, folder);
}

/** The status of the last command before the end marker is that of the tests; whatever follows resets files. */
function ownScript(script: string): EvalScript {
  const lines = script.split("\n");
  const end = lines.findIndex((line) => line.includes(endMark));
  const start = lines.findIndex((line) => line.includes(startMark));
  const command = lines
    .slice(start + 1, end === -1 ? undefined : end)
    .join("\n")
    .trim()
    .slice(0, 4000);
  if (end === -1 || script.includes(exitCodeMark)) return { text: script, tellsExitCode: false, command };
  const text = [
    ...lines.slice(0, end),
    `${variable}=$?`,
    lines[end],
    `echo "${exitCodeMark}: $${variable}"`,
    ...lines.slice(end + 1),
    `exit "$${variable}"`,
    "",
  ].join("\n");
  return { text, tellsExitCode: true, command };
}

const conda = [
  "if [ -f /opt/miniconda3/bin/activate ]; then source /opt/miniconda3/bin/activate && conda activate testbed; fi",
];

function markedScript(before: readonly string[], command: string, after: readonly string[]): EvalScript {
  const lines = ["#!/bin/bash", "set -uxo pipefail", ...before, `: '${startMark}'`, command];
  return ownScript([...lines, `: '${endMark}'`, ...after].join("\n"));
}

function tableScript({ repo, version, baseCommit, testPatch }: Graded, folder: string): EvalScript {
  const test = testCommandOf(repo, version);
  if (test === null) throw new TypeError(`no test command for ${repo}: its row was not checked`);
  const reset = resetLines(testPatch, baseCommit ?? "HEAD");
  const before = [
    ...conda,
    `cd ${quoted(folder)}`,
    ...test.before,
    `git config --global --add safe.directory ${quoted(folder)}`,
    ...(test.install === null ? [] : [installLine(test.install)]),
    ...reset,
    ...(testPatch === "" ? [] : [`git apply -v ${testPatchPath} || { echo '>>>>> Tests Errored'; exit 2; }`]),
  ];
  return markedScript(before, [test.command, ...testNames(testPatch, test.names)].join(" "), reset);
}

/** Without a network the tools that build a package can't be fetched: those of the image do. */
function installLine(install: string): string {
  const pip = /^python -m pip install (?!.*--no-build-isolation)(.*)$/u.exec(install)?.[1];
  return pip === undefined ? install : `${install} || python -m pip install --no-build-isolation --no-deps ${pip}`;
}

/** Test files as the commit has them; those it does not have are taken away. */
function resetLines(testPatch: string, commit: string): string[] {
  const files = patchFiles(testPatch);
  const known = files.filter(({ change }) => change !== "added").map(({ path }) => quoted(path));
  const added = files.filter(({ change }) => change === "added").map(({ path }) => quoted(path));
  return [
    ...(known.length === 0 ? [] : [`git checkout ${commit} -- ${known.join(" ")}`]),
    ...(added.length === 0 ? [] : [`rm -f -- ${added.join(" ")}`]),
  ];
}

const noTests = [".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"] as const;

function testNames(testPatch: string, names: "paths" | "modules" | "cases"): string[] {
  if (names === "cases") {
    const cases = [...testPatch.matchAll(/\[case ([^\]]+)\]/gu)].map(([, name]) => name ?? "");
    return [quoted(cases.join(" or "))];
  }
  const paths = patchFiles(testPatch)
    .map(({ path }) => path)
    .filter((path) => !noTests.some((end) => path.endsWith(end)));
  if (names === "paths") return paths.map(quoted);
  return paths.map((path) =>
    quoted(
      path
        .replace(/\.py$/u, "")
        .replace(/^tests\//u, "")
        .replaceAll("/", "."),
    ),
  );
}

/** Test files of both lists that are run: those that hold a test that has to pass. */
export const smithTestFiles = (failToPass: readonly string[]): string[] =>
  [...new Set(failToPass.map((name) => name.split("::", 1)[0] ?? ""))].sort();

function smithScript({ failToPass }: Graded, folder: string): EvalScript {
  const files = smithTestFiles(failToPass).map(quoted);
  const command = ["pytest --disable-warnings --color=no --tb=no --verbose", ...files];
  const before = [
    ...conda,
    `cd ${quoted(folder)}`,
    `git config --global --add safe.directory ${quoted(folder)}`,
    // The bug was committed without them.
    `git checkout -q HEAD^ -- ${files.join(" ")} || { echo '>>>>> Tests Errored'; exit 2; }`,
  ];
  return markedScript(before, command.join(" "), []);
}

/** One shell word. */
export const quoted = (text: string): string =>
  /^[\w./+@:=-]+$/u.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
