/** Predictions of runs: at most one each, never changed once it is there. */
import type { StoredPrediction } from "@rolldeck/contracts/api/predictions";
import type pg from "pg";
import { z } from "zod";

/** A run whose steps nobody has predicted yet. */
const Unpredicted = z.object({
  runId: z.string(),
  kind: z.enum(["train", "evaluate"]),
  /** Its oldest steps that are over, at most five. */
  stepsDone: z.array(z.int()),
});
export type Unpredicted = z.infer<typeof Unpredicted>;

/** Ended runs are looked at this long: a short one may be over before anybody looked. */
const lookBack = "1 hour";

/** Runs that have begun, without a prediction; those of an outside trainer, which sets their pace, are left out. */
export async function unpredictedRuns(pool: pg.Pool): Promise<Unpredicted[]> {
  const { rows } = await pool.query(
    `select r.id as "runId", r.kind, array(
       select s.step from steps s where s.run_id = r.id and s.purpose = r.kind and s.state = 'done' order by s.step limit 5
     ) as "stepsDone"
     from runs r left join predictions p on p.run_id = r.id
     where p.run_id is null and r.started_at is not null and r.step_source = 'planned'
       and (r.ended_at is null or r.ended_at > now() - interval '${lookBack}')
     order by r.started_at desc limit 100`,
  );
  return z.array(Unpredicted).parse(rows);
}

/** @returns false where one is there already, or the run is gone */
export async function storePrediction(pool: pg.Pool, runId: string, prediction: StoredPrediction): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into predictions (run_id, prediction) select id, $2 from runs where id = $1 on conflict do nothing`,
    [runId, prediction],
  );
  return rowCount === 1;
}
