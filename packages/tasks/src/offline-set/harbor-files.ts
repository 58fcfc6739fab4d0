/**
 * A task of the set as a Harbor directory. Its test script gives the verdict that the row's grader gives: the same script runs, and
 * the same lists decide.
 */
import { stringify } from "smol-toml";
import { evalScriptOf, quoted } from "../swe/eval-script.ts";
import { evalScript, repositoryFolder } from "./eval-script.ts";
import type { ExpectedTests } from "./expected-tests.ts";
import type { PreparedTask } from "./prepare-task.ts";
import { repositoryName } from "./set-list.ts";

export interface HarborFile {
  readonly path: string;
  readonly text: string;
  readonly executable: boolean;
}

/** The repository beside the Dockerfile. */
export const repositoryArchive = "repository.tar";

/** What the image is made of, with the archive of the repository. */
export const dockerfile = (base: string): string =>
  `FROM ${base}\nADD ${repositoryArchive} ${repositoryFolder}/\nWORKDIR ${repositoryFolder}\n`;

/** @param gradeScript text of infra/swe-set/grade.py */
export function harborFiles(
  task: PreparedTask,
  tests: ExpectedTests,
  options: { readonly image: string; readonly base: string; readonly gradeScript: string },
): HarborFile[] {
  const { entry } = task;
  const file = (path: string, text: string, executable = false): HarborFile => ({ path, text, executable });
  return [
    file("task.toml", taskToml(task, options.image)),
    file("instruction.md", instruction(entry.report)),
    file("environment/Dockerfile", dockerfile(options.base)),
    file("tests/test.sh", testScript(task), true),
    file("tests/eval.sh", gradedScript(task), true),
    file("tests/grade.py", options.gradeScript),
    file("tests/expected.json", `${JSON.stringify({ log: entry.log, ...lists(tests) }, null, 1)}\n`),
    file("solution/solve.sh", solveScript(), true),
    file("solution/fix.patch", task.patch),
  ];
}

/** The script as the row's grader runs it: with the tests' exit code. */
export const gradedScript = (task: PreparedTask): string =>
  evalScriptOf(
    {
      kind: "swe-bench",
      repo: repositoryName(task.entry),
      version: null,
      baseCommit: task.baseCommit,
      testPatch: task.testPatch,
      evalScript: evalScript(task),
      failToPass: [],
    },
    repositoryFolder,
  ).text;

const lists = ({ failToPass, passToPass }: ExpectedTests) => ({ failToPass, passToPass });

const taskToml = ({ entry, baseCommit }: PreparedTask, image: string): string =>
  `${stringify({
    schema_version: "1.1",
    task: { name: `rolldeck/${entry.id}`, description: `${repositoryName(entry)} ${entry.source.version}` },
    metadata: { repository: repositoryName(entry), base_commit: baseCommit },
    agent: { timeout_sec: 1800 },
    verifier: { timeout_sec: entry.timeoutS },
    environment: { docker_image: image, build_timeout_sec: 600, cpus: 2, memory_mb: 2048, allow_internet: false },
  })}\n`;

const instruction = (report: string): string =>
  [
    `The folder ${repositoryFolder} holds the source code of a Python package. Somebody who uses it reports:`,
    "",
    report.trim(),
    "",
    "Change the package so that what is reported works. Leave its tests as they are; others will be run on your change.",
    "There is no network.",
    "",
  ].join("\n");

/** Files by which a test run can be bent that are no part of a fix: untracked ones go, tracked ones are the commit's again. */
const bending = ["conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py", "usercustomize.py"];

function testScript({ baseCommit }: PreparedTask): string {
  const patterns = bending.flatMap((name) => [name, `*/${name}`]).map(quoted);
  const git = "git -c core.fsmonitor=false -c core.hooksPath=/dev/null";
  return [
    "#!/bin/bash",
    "set -uo pipefail",
    "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "unset PYTHONPATH PYTHONSTARTUP PYTEST_ADDOPTS PYTEST_PLUGINS GIT_DIR GIT_WORK_TREE",
    // What the repository's own settings have git run (filters, helpers) is the agent's.
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1",
    `cd ${repositoryFolder} && [ -d .git ] && [ ! -L .git ] || exit 2`,
    "rm -rf .git/config .git/config.worktree .git/info/attributes || exit 2",
    "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfileMode = true\\n\\tbare = false\\n' > .git/config || exit 2",
    `${git} ls-files --others -z -- ${patterns.join(" ")} | xargs -0 -r rm -f --`,
    `${git} ls-tree -r --name-only -z ${baseCommit} | grep -zE '(^|/)(${bending.map((name) => name.replaceAll(".", "\\.")).join("|")})$' \\`,
    `  | xargs -0 -r ${git} checkout --quiet ${baseCommit} --`,
    "log=$(mktemp)",
    'bash /tests/eval.sh >"$log" 2>&1',
    'cat "$log"',
    "mkdir -p /logs/verifier",
    'python3 -I /tests/grade.py "$log" /tests/expected.json /logs/verifier/reward.json',
    "",
  ].join("\n");
}

const solveScript = (): string =>
  [
    "#!/bin/bash",
    "set -euo pipefail",
    `cd ${repositoryFolder}`,
    "git apply --whitespace=nowarn /solution/fix.patch",
    "",
  ].join("\n");
