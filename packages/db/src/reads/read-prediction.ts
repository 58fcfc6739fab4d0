/** What was predicted of a run, and what its steps took. */
import { StoredPrediction } from "@rolldeck/contracts/api/predictions";
import { z } from "zod";
import { msBetween } from "./read-durations.ts";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

const Row = z.object({ madeAt: z.string(), prediction: StoredPrediction });
const Taken = z.object({ step: z.int(), actualMs: z.number() });
export interface PredictionRows extends z.output<typeof Row> {
  /** The newest steps that are over, oldest first. */
  readonly taken: readonly z.output<typeof Taken>[];
}

const maxSteps = 500;

/** Null where none was made. @param purpose of the steps */
export async function readPrediction(
  db: Queryable,
  runId: string,
  purpose: "train" | "evaluate",
): Promise<PredictionRows | null> {
  const row = await readRow(
    db,
    Row,
    `select ${iso("p.made_at")} as "madeAt", p.prediction from predictions p join runs r on r.id = p.run_id
     where p.run_id = $1 and r.kind = $2`,
    [runId, purpose],
  );
  if (row === null) return null;
  return { ...row, taken: (await readRows(db, Taken, takenSql, [runId, purpose])).toReversed() };
}

/** Where steps overlap, one's time begins when the one before it is over. */
const takenSql = `
  select s."step", ${msBetween('s."from"', 's."ended_at"')} as "actualMs"
  from (
    select "step", "state", "ended_at", greatest("created_at", max("ended_at") over (
      order by "step" rows between unbounded preceding and 1 preceding)) as "from"
    from "steps" where "run_id" = $1 and "purpose" = $2 and "ended_at" is not null
  ) s
  where s."state" = 'done' and s."from" <= s."ended_at" order by s."step" desc limit ${maxSteps}`;
