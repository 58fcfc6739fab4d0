/** What a config asks of other runs that they don't have: weights to begin with, an evaluation to be compared with. */
import type { StoredCheckpoints } from "@rolldeck/backends/gpu-worker/stored-checkpoints";
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { BoundaryError, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { gpuWorkerName, isSupervised } from "@rolldeck/db/gpu-workers";
import { readEvaluations } from "@rolldeck/db/reads/read-evaluation";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { newestCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { Pool } from "pg";
import type { z } from "zod";

type Issue = z.output<typeof ConfigIssue>;
/** Null where this server knows no GPU worker. */
type Stored = Pick<StoredCheckpoints, "verify"> | null;

/** A check that passed so far: what the other runs lack fails it. */
export async function withOtherRuns(check: ConfigCheck, pool: Pool, stored: Stored): Promise<ConfigCheck> {
  if (check.config === null) return check;
  const issues = [await baselineIssue(pool, check.config), await startIssue(pool, check.config, stored)].filter(
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

async function startIssue(
  pool: Pool,
  { model: { startFrom, name }, backend }: RunConfig,
  stored: Stored,
): Promise<Issue | null> {
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
  // Workers of the fleet are each a run's own, and so is what they save.
  if (other.backend.fleet !== null || backend.fleet !== null)
    return issue("run", "workers of the fleet can't read what another run's have saved", "begin with a model folder");
  const [there, here] = [
    gpuWorkerName({ runId: run, config: other }),
    gpuWorkerName({ runId: run, config: { backend } }),
  ];
  if (there !== here)
    return issue("run", `the weights of run ${run} lie on ${there}, this run's backend is ${here}`, "use its backend");
  const found = await newestCheckpoint(pool, run, version ?? undefined);
  if (found === null || (version !== null && found.version !== version))
    return issue("version", `run ${run} has no such checkpoint`, "see its Checkpoints tab");
  const damage = isSupervised(backend) ? await damageOf(stored, found.path) : null;
  if (damage === null) return null;
  return issue(
    "version",
    `the checkpoint of version ${found.version} can't be used: ${damage}`,
    "choose another version",
  );
}

/** A large checkpoint takes seconds to read; a launch does not wait for longer. */
const verifyWithinMs = 60_000;

/** Null: it is whole, or nobody can tell now. Whoever loads it looks again. */
async function damageOf(stored: Stored, path: string): Promise<string | null> {
  try {
    await stored?.verify(path, AbortSignal.timeout(verifyWithinMs));
    return null;
  } catch (error) {
    if (error instanceof BoundaryError && error.code === "unknown_model") return "its files are gone";
    if (error instanceof BoundaryError && error.code === "conflict") return error.message;
    return null;
  }
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
