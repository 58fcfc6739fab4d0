/**
 * The script that grades a repository: upstream's test files are the commit's, the test patch goes in, the tests run between the
 * markers that readers of such logs look for. Graders add the line that tells the tests' exit code: it is that of the last command
 * before the end marker.
 */
import { quoted } from "../swe/eval-script.ts";
import { endMark, startMark } from "../swe/logs/read-test-log.ts";
import type { PreparedTask } from "./prepare-task.ts";

export const repositoryFolder = "/testbed";

type Gradable = Pick<PreparedTask, "baseCommit" | "testPatch" | "testFiles"> & {
  readonly entry: Pick<PreparedTask["entry"], "test">;
};

/** Lines that make the test files what the commit has. */
function restoreTests({ baseCommit, testFiles }: Gradable): string[] {
  const { present, added } = testFiles;
  const words = (files: readonly string[]): string => files.map(quoted).join(" ");
  // Whatever stands there in their place: a checkout does not replace a folder that is not empty.
  const lines = [`rm -rf -- ${words([...present, ...added])}`];
  if (present.length > 0) lines.push(`git checkout --quiet ${baseCommit} -- ${words(present)}`);
  return lines;
}

export function evalScript(task: Gradable): string {
  const end = hereDocumentEnd(task.testPatch);
  return [
    "#!/bin/bash",
    "set -uo pipefail",
    "export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1",
    `cd ${repositoryFolder} || exit 2`,
    ...restoreTests(task),
    `git apply --whitespace=nowarn - <<'${end}' || { echo '>>>>> Tests Errored'; exit 2; }`,
    // A patch ends with a line end of its own.
    task.testPatch.replace(/\n$/, ""),
    end,
    `echo '${startMark}'`,
    `( ${task.entry.test} ) 2>&1`,
    `echo '${endMark}'`,
    ...restoreTests(task),
    "",
  ].join("\n");
}

/** A word that is no line of the text. */
function hereDocumentEnd(text: string): string {
  const lines = new Set(text.split("\n"));
  let word = "END_OF_TEST_PATCH";
  while (lines.has(word)) word += "_";
  return word;
}
