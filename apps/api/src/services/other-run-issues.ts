/** What a config asks of other runs that they don't have: weights to begin with, an evaluation to be compared with. */
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import { BoundaryError, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { readRunFiles } from "@rolldeck/db/fleet/readers";
import { gpuWorkerName } from "@rolldeck/db/gpu-workers";
import { readEvaluations } from "@rolldeck/db/reads/read-evaluation";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { newestCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { Pool } from "pg";
import type { z } from "zod";
import type { Stored, StoredPlaces } from "./stored-places.ts";

type Issue = z.output<typeof ConfigIssue>;
/** Where weights to begin with are looked at. */
export type LookedAt = Pick<StoredPlaces<Pick<Stored, "verify">>, "of">;

/** A check that passed so far: what the other runs lack fails it. */
export async function withOtherRuns(check: ConfigCheck, pool: Pool, places: LookedAt): Promise<ConfigCheck> {
  if (check.config === null) return check;
  const issues = [await baselineIssue(pool, check.config), await startIssue(pool, check.config, places)].filter(
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
  places: LookedAt,
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
  const apart = await apartIssue(pool, { run, other: other.backend, backend });
  if (apart !== null) return issue("run", apart.message, apart.fix);
  const found = await newestCheckpoint(pool, run, version ?? undefined);
  if (found === null || (version !== null && found.version !== version))
    return issue("version", `run ${run} has no such checkpoint`, "see its Checkpoints tab");
  const damage = await damageOf(places, { run, other }, found.path);
  if (damage === null) return null;
  return issue(
    "version",
    `the checkpoint of version ${found.version} can't be used: ${damage}`,
    "choose another version",
  );
}

/** A large checkpoint takes seconds to read; a launch does not wait for longer. */
const verifyWithinMs = 60_000;

type Backend = RunConfig["backend"];

/** Why the run's workers would not reach the other run's files; null: they do. Of the fleet, they start where those are. */
async function apartIssue(
  pool: Pool,
  { run, other, backend }: { readonly run: string; readonly other: Backend; readonly backend: Backend },
): Promise<(Pick<Issue, "message"> & { readonly fix: string }) | null> {
  if (other.fleet !== null && backend.fleet !== null) {
    const files = await readRunFiles(pool, run);
    if (files === null || files.host === null || files.hostIsRegistered) return null;
    return {
      message: `the weights of run ${run} are on host ${files.host} of the fleet, which is not registered any more`,
      fix: `register the machine again as ${files.host} (rolldeck fleet add-host), or begin with a model folder`,
    };
  }
  const nameOf = (config: Backend) =>
    config.fleet === null ? gpuWorkerName({ runId: run, config: { backend: config } }) : "the fleet";
  const [there, here] = [nameOf(other), nameOf(backend)];
  if (there === here) return null;
  return {
    message: `the weights of run ${run} lie on ${there}, this run's backend is ${here}`,
    fix: "use its backend",
  };
}

/** Null: it is whole, or nobody can tell now. Whoever loads it looks again. */
async function damageOf(
  places: LookedAt,
  { run, other }: { readonly run: string; readonly other: RunConfig },
  path: string,
): Promise<string | null> {
  try {
    const { stored } = await places.of(run, other);
    await stored.verify(path, AbortSignal.timeout(verifyWithinMs));
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
