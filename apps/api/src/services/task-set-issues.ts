/** What a config asks of its tasks that they can't do: a data set that is not there or does not fit, an option they lack. */
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import type { z } from "zod";
import { type SandboxFacts, sandboxIssue, sandboxWarning } from "./sandbox-issues.ts";

type Issue = z.output<typeof ConfigIssue>;
type Opener = Pick<OpenedTasks, "of">;

/** What the server knows of itself beyond its catalogue. */
export interface ServerFacts {
  /** Whether verifiers that ask a judge have one. */
  readonly hasJudge: boolean;
  readonly sandboxes: SandboxFacts;
}

/**
 * A check that passed so far, with its task sets opened: their issues fail it, an empty split it needs or a sandbox that can't be
 * had does too.
 */
export async function withOpenedTasks(check: ConfigCheck, tasks: Opener, server: ServerFacts): Promise<ConfigCheck> {
  if (check.config === null) return check;
  const issues: Issue[] = [];
  const warnings: Issue[] = [];
  for (const taskSet of check.config.taskSets.keys()) {
    const found = await taskSetIssues(check.config, taskSet, { tasks, server });
    // Task sets that share a sandbox's setting are told of it once.
    issues.push(...found.issues.filter((issue) => !issues.some(({ path }) => path === issue.path)));
    warnings.push(...found.warnings.filter((issue) => !warnings.some(({ path }) => path === issue.path)));
  }
  const told = { ...check, warnings: [...check.warnings, ...warnings] };
  return issues.length === 0 ? told : { ...told, ok: false, config: null, issues, estimate: null };
}

interface Scene {
  readonly tasks: Opener;
  readonly server: ServerFacts;
}
interface Found {
  readonly issues: readonly Issue[];
  readonly warnings: readonly Issue[];
}

async function taskSetIssues(config: RunConfig, taskSet: number, { tasks, server }: Scene): Promise<Found> {
  try {
    const task = await tasks.of(config, taskSet);
    const empty = (split: "train" | "evaluate", message: string): Issue[] =>
      task.size(split) === 0
        ? [{ path: `taskSets[${taskSet}].dataset`, message, fix: "name a data set that has some" }]
        : [];
    const { asksJudge } = task;
    const issues = [
      ...(asksJudge === undefined || server.hasJudge ? [] : [noJudge(`taskSets[${taskSet}].${asksJudge}`)]),
      ...(config.kind === "train" ? empty("train", "there are no training rows") : []),
      ...(config.evaluation.samples > 0 ? empty("evaluate", "there are no held-out rows for evaluation.samples") : []),
      ...list(sandboxIssue(task, taskSet, config, server.sandboxes)),
    ];
    return { issues, warnings: list(sandboxWarning(task, config, server.sandboxes)) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return {
      issues: error.issues.map(({ path, message, fix }) => ({ path, message, fix: fix ?? null })),
      warnings: [],
    };
  }
}

const list = (issue: Issue | null): Issue[] => (issue === null ? [] : [issue]);

const noJudge = (path: string): Issue => ({
  path,
  message: "this server has no judge",
  fix: "mark a chat endpoint with judge: true in the list that ROLLDECK_ENDPOINTS names",
});
