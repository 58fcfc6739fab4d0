/** One run: summary, config, boot progress, where its rollouts are, pace. */
import { RunDetail, type RunSummary } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { BootPhase } from "@rolldeck/contracts/events";
import { DispatcherChange, RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { gpuWorkerName, triesUnit } from "../gpu-workers.ts";
import { readAbsence } from "./read-absence.ts";
import { readPreflight } from "./read-preflight.ts";
import { readRunCost } from "./read-run-cost.ts";
import { readSandboxRefusal } from "./read-sandbox-refusal.ts";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";
import { readSummaries } from "./run-summary.ts";

type Boot = NonNullable<RunDetail["boot"]>;
/** Steps the pace is taken over. */
const paceSteps = 20;

const HeadRow = z.object({
  config: RunConfig,
  seed: z.int(),
  head: z.int(),
  statusSince: z.string(),
  boot: RunDetail.shape.boot,
  servingVersion: z.int().nullable(),
  dispatch: DispatcherChange.nullable(),
  draining: z.boolean(),
  runLimit: z.int().nullable(),
});

/** @throws NotFoundError */
export async function readRun(db: Queryable, runId: string): Promise<RunDetail> {
  const [summary] = await readSummaries(db, [runId]);
  const head = await readHeadRow(db, runId);
  if (!summary || !head) throw new NotFoundError("run", runId);
  const secondsPerStep = await readPace(db, runId);
  return {
    ...summary,
    ...head,
    boot: await bootOf(db, summary, head),
    waitingFor: await readAbsence(db, summary, head),
    sandboxRefusal: await readSandboxRefusal(db, runId),
    cost: await readRunCost(db, runId),
    preflight: await readPreflight(db, summary, head),
    counts: {
      byStage: await readCounts(db, runId),
      settled: await count(
        db,
        `select count(*)::float8 as "count" from "rollouts" where "run_id" = $1 and "state" = 'settled'`,
        runId,
      ),
      trainedRollouts: await count(db, trainedRollouts, runId),
    },
    openSteps: await readOpenSteps(db, runId),
    checkpoints: await readCheckpoints(db, runId),
    secondsPerStep,
    etaSeconds: eta(summary, secondsPerStep),
  };
}

const readHeadRow = (db: Queryable, runId: string) =>
  readRow(
    db,
    HeadRow,
    `select "config", "seed", ("next_seq" - 1)::float8 as "head", ${iso('"status_since"')} as "statusSince", "boot",
       "serving_version" as "servingVersion", "dispatch", "draining", "run_limit" as "runLimit"
     from "runs" where "id" = $1`,
    [runId],
  );

const trainedRollouts = `
  select count(distinct t."rollout_id")::float8 as "count" from "steps" s join "training_rows" t on t."step_id" = s."id"
  where s."run_id" = $1 and s."state" = 'done' and t."sent"`;

async function count(db: Queryable, sql: string, runId: string): Promise<number> {
  const row = await readRow(db, z.object({ count: z.int() }), sql, [runId]);
  return row?.count ?? 0;
}

const readCounts = (db: Queryable, runId: string) =>
  readRows(
    db,
    RunDetail.shape.counts.shape.byStage.element,
    `select r."stage", r."state", count(*)::int as "count"
     from "steps" s join "rollouts" r on r."step_id" = s."id"
     where s."run_id" = $1 and s."state" in ('gathering', 'updating') group by 1, 2 order by 1, 2`,
    [runId],
  );

const readOpenSteps = (db: Queryable, runId: string) =>
  readRows(
    db,
    RunDetail.shape.openSteps.element,
    `select s."id" as "stepId", s."step", s."purpose", s."state",
       (count(r."id") filter (where r."state" = 'settled'))::int as "settled", count(r."id")::int as "rollouts"
     from "steps" s left join "rollouts" r on r."step_id" = s."id"
     where s."run_id" = $1 and s."state" in ('gathering', 'updating')
     group by s."id" order by s."step", s."purpose"`,
    [runId],
  );

const readCheckpoints = (db: Queryable, runId: string) =>
  readRows(
    db,
    RunDetail.shape.checkpoints.element,
    `select "version", "name", "bytes"::float8 as "bytes", ${iso('"created_at"')} as "createdAt"
     from "checkpoints" where "run_id" = $1 and lower("state") = 'complete' order by "version" desc limit 100`,
    [runId],
  );

/** Steps overlap, so pace is the time between their ends; the very first counts from its creation. */
async function readPace(db: Queryable, runId: string): Promise<number | null> {
  const row = await readRow(
    db,
    z.object({ steps: z.int(), span: z.number().nullable(), first: z.number().nullable() }),
    `select count(*)::int as "steps", extract(epoch from max("ended_at") - min("ended_at"))::float8 as "span",
       extract(epoch from max("ended_at") - min("created_at"))::float8 as "first"
     from (select "created_at", "ended_at" from "steps"
       where "run_id" = $1 and "purpose" = 'train' and "state" = 'done' order by "step" desc limit ${paceSteps}) s`,
    [runId],
  );
  if (!row || row.steps === 0) return null;
  return row.steps === 1 ? row.first : (row.span ?? 0) / (row.steps - 1);
}

function eta(run: RunSummary, secondsPerStep: number | null): number | null {
  if (secondsPerStep === null || run.kind !== "train" || run.endedAt !== null) return null;
  return Math.max(0, run.steps - run.step) * secondsPerStep;
}

/** Only a run that is not under way yet boots. Before a worker reports on it, its GPU worker's own start is the progress. */
async function bootOf(db: Queryable, run: RunSummary, head: z.output<typeof HeadRow>): Promise<Boot | null> {
  if (run.status !== "queued" && run.status !== "preparing") return null;
  // What the fleet makes of it is told by the job that waits for its workers.
  if (head.config.backend.fleet !== null) return head.boot ?? waiting(run);
  const row = await readRow(
    db,
    GpuWorkerRow,
    `select "state", "boot", "url", extract(epoch from now() - "updated_at")::float8 as "ageS"
     from "gpu_workers" where "name" = $1 and "state" <> 'ready'`,
    [gpuWorkerName({ runId: run.runId, config: head.config })],
  );
  return (row && gpuWorkerBoot(row)) ?? head.boot ?? waiting(run);
}

const GpuWorkerRow = z.object({
  state: z.enum(["installing", "starting", "lost", "absent", "failed"]),
  boot: z
    .object({
      message: z.string(),
      done: z.number().nullish(),
      total: z.number().nullish(),
      unit: z.string().nullish(),
      elapsedMs: z.number().nullish(),
    })
    .nullable(),
  url: z.string().nullable(),
  ageS: z.number(),
});

const gpuWorkerMessages = {
  installing: "Installing the GPU worker's Python environment",
  starting: "Starting the GPU worker",
  lost: "The GPU worker does not answer; waiting for it to come back",
  absent: "No GPU worker is running here",
  failed: "The GPU worker could not be started",
};

function gpuWorkerBoot({ state, boot, url, ageS }: z.output<typeof GpuWorkerRow>): Boot {
  const said = boot?.unit === triesUnit ? `Waiting for ${url ?? "the model server"}: ${boot.message}` : boot?.message;
  return {
    phase: BootPhase.enum[state === "installing" ? "environment" : "model-server"],
    message: said || gpuWorkerMessages[state],
    done: boot?.done ?? null,
    total: boot?.total ?? null,
    unit: boot?.unit ?? null,
    elapsedMs: boot?.elapsedMs ?? ageS * 1000,
  };
}

const waiting = (run: RunSummary): Boot => ({
  phase: "waiting-for-worker",
  message: "Waiting for a worker to take the run",
  done: null,
  total: null,
  unit: null,
  elapsedMs: Math.max(0, Date.now() - Date.parse(run.createdAt)),
});
