/** What a config asks of other runs that they don't have: weights to begin with, an evaluation to be compared with. */
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readEvaluations } from "@rolldeck/db/reads/read-evaluation";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { newestCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { Pool } from "pg";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;

/** A check that passed so far: what the other runs lack fails it. */
export async function withOtherRuns(check: ConfigCheck, pool: Pool): Promise<ConfigCheck> {
  if (check.config === null) return check;
  const issues = [await baselineIssue(pool, check.config), await startIssue(pool, check.config)].filter(
    (issue) => issue !== null,
  );
  return issues.length === 0 ? check : { ...check, ok: false, config: null, issues, estimate: null };
}

async function baselineIssue(pool: Pool, { evaluation: { baseline } }: RunConfig): Promise<Issue | null> {
  if (baseline === null) return null;
  const issue = (message: string): Issue => ({
    path: "evaluation.baseline",
    message,
    fix: "name a run with an evaluation, or null",
  });
  const found = await orNull(readEvaluations(pool, baseline, 1));
  if (found === null) return issue(`there is no run ${baseline}`);
  return found.evaluations.length === 0 ? issue(`run ${baseline} has no evaluation to compare with`) : null;
}

async function startIssue(pool: Pool, { model: { startFrom, name } }: RunConfig): Promise<Issue | null> {
  if (startFrom === null) return null;
  const { run, version } = startFrom;
  const issue = (field: string, message: string, fix: string): Issue => ({
    path: `model.startFrom.${field}`,
    message,
    fix,
  });
  const other = await orNull(readConfig(pool, run));
  if (other === null) return issue("run", `there is no run ${run}`, "name a run");
  if (other.model.name !== name)
    return issue("run", `run ${run} trains ${other.model.name}, not ${name}`, "use that model's name");
  const found = await newestCheckpoint(pool, run, version ?? undefined);
  if (found !== null && (version === null || found.version === version)) return null;
  return issue("version", `run ${run} has no such checkpoint`, "see its Checkpoints tab");
}

/** Null where there is no such run. */
async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    throw error;
  }
}
