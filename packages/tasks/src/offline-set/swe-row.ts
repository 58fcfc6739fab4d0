/** A task of the set as a row in the shape of SWE-bench, with the image, script and log format that graders ask for. */

import { evalScript } from "./eval-script.ts";
import type { ExpectedTests } from "./expected-tests.ts";
import type { PreparedTask } from "./prepare-task.ts";
import { repositoryName } from "./set-list.ts";

export interface SweRow {
  readonly repo: string;
  readonly instance_id: string;
  readonly base_commit: string;
  readonly version: string;
  readonly problem_statement: string;
  readonly hints_text: string;
  readonly patch: string;
  readonly test_patch: string;
  readonly FAIL_TO_PASS: readonly string[];
  readonly PASS_TO_PASS: readonly string[];
  readonly image: string;
  readonly eval_script: string;
  readonly log_parser: string;
}

export const sweRow = (task: PreparedTask, tests: ExpectedTests, image: string): SweRow => ({
  repo: repositoryName(task.entry),
  instance_id: task.entry.id,
  base_commit: task.baseCommit,
  version: task.entry.source.version,
  problem_statement: task.entry.report,
  hints_text: "",
  patch: task.patch,
  test_patch: task.testPatch,
  FAIL_TO_PASS: tests.failToPass,
  PASS_TO_PASS: tests.passToPass,
  image,
  eval_script: evalScript(task),
  log_parser: `parse_log_${task.entry.log}`,
});
