/** A run's complete checkpoints with what each is kept for, and the runs it comes from and that came from it. */
import type { RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { lineageRelations, runStatuses } from "@rolldeck/contracts/lifecycle";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { z } from "zod";
import { checkpointFacts, type StoredCheckpointFacts } from "../training/checkpoint-facts.ts";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

const Relative = z.object({
  runId: z.string(),
  name: z.string(),
  status: z.enum(runStatuses),
  relation: z.enum(lineageRelations),
  version: z.int().nullable(),
});
type Relative = RunCheckpoints["children"][number];

const Saved = z.object({ version: z.int(), bytes: z.number().nullable(), createdAt: z.string() });
export type StoredCheckpoint = StoredCheckpointFacts & z.infer<typeof Saved>;

/** Newest first. */
export async function readCheckpoints(
  db: Queryable,
  runId: string,
  rule: RunConfig["checkpoints"],
): Promise<StoredCheckpoint[]> {
  const facts = await checkpointFacts(db, runId, rule.keepBest);
  const saved = await readRows(
    db,
    Saved,
    `select "version", "bytes"::float8 as "bytes", ${iso('"created_at"')} as "createdAt" from "checkpoints" where "run_id" = $1`,
    [runId],
  );
  const byVersion = new Map(saved.map((row) => [row.version, row]));
  return facts.flatMap((fact) => {
    const row = byVersion.get(fact.version);
    return row === undefined ? [] : [{ ...fact, ...row }];
  });
}

const Run = z.object({
  status: z.enum(runStatuses),
  kind: z.string(),
  stepSource: z.string(),
  relation: z.enum(lineageRelations).nullable(),
});

/** The run's own side of it. @throws NotFoundError */
export async function readLineage(
  db: Queryable,
  runId: string,
): Promise<z.infer<typeof Run> & { readonly parent: Relative | null; readonly children: Relative[] }> {
  const run = await readRow(
    db,
    Run,
    `select "status", "kind", "step_source" as "stepSource", "parent_relation" as "relation" from "runs" where "id" = $1`,
    [runId],
  );
  if (run === null) throw new NotFoundError("run", runId);
  const parent = await readRow(
    db,
    Relative,
    `select p."id" as "runId", p."name", p."status", r."parent_relation" as "relation", r."parent_version" as "version"
     from "runs" r join "runs" p on p."id" = r."parent_run_id" where r."id" = $1`,
    [runId],
  );
  const children = await readRows(
    db,
    Relative,
    `select "id" as "runId", "name", "status", "parent_relation" as "relation", "parent_version" as "version"
     from "runs" where "parent_run_id" = $1 order by "created_at" desc limit 200`,
    [runId],
  );
  return { ...run, parent, children };
}
