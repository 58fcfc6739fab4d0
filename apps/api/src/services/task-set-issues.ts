/** What a config asks of its tasks that they can't do: a data set that is not there or does not fit, an option they lack. */
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;
type Opener = Pick<OpenedTasks, "of">;

/**
 * A check that passed so far, with its task sets opened: their issues fail it, an empty split it needs does too.
 * @param hasJudge whether verifiers that ask a judge have one
 */
export async function withOpenedTasks(check: ConfigCheck, tasks: Opener, hasJudge: boolean): Promise<ConfigCheck> {
  if (check.config === null) return check;
  const issues: Issue[] = [];
  for (const taskSet of check.config.taskSets.keys())
    issues.push(...(await taskSetIssues(check.config, taskSet, { tasks, hasJudge })));
  return issues.length === 0 ? check : { ...check, ok: false, config: null, issues, estimate: null };
}

interface Scene {
  readonly tasks: Opener;
  readonly hasJudge: boolean;
}

async function taskSetIssues(config: RunConfig, taskSet: number, { tasks, hasJudge }: Scene): Promise<Issue[]> {
  try {
    const task = await tasks.of(config, taskSet);
    const empty = (split: "train" | "evaluate", message: string): Issue[] =>
      task.size(split) === 0
        ? [{ path: `taskSets[${taskSet}].dataset`, message, fix: "name a data set that has some" }]
        : [];
    const { asksJudge } = task;
    return [
      ...(asksJudge === undefined || hasJudge ? [] : [noJudge(`taskSets[${taskSet}].${asksJudge}`)]),
      ...(config.kind === "train" ? empty("train", "there are no training rows") : []),
      ...(config.evaluation.samples > 0 ? empty("evaluate", "there are no held-out rows for evaluation.samples") : []),
    ];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return error.issues.map(({ path, message, fix }) => ({ path, message, fix: fix ?? null }));
  }
}

const noJudge = (path: string): Issue => ({
  path,
  message: "this server has no judge",
  fix: "mark a chat endpoint with judge: true in the list that ROLLDECK_ENDPOINTS names",
});
