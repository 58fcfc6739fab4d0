/** Which attempt of a rollout is read, and what is needed to turn its tokens into text. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

const AttemptRow = z.object({
  rolloutId: z.string(),
  runId: z.string(),
  attempt: z.int(),
  newest: z.int(),
  /** The run's model, which names its tokenizer. */
  model: z.string(),
  /** How the run's model writes calls. */
  dialect: z.string().nullable(),
});
export type AttemptRef = z.infer<typeof AttemptRow>;

/** Without `attempt`: the one that counts. @throws NotFoundError */
export async function readAttemptRef(db: Queryable, rolloutId: string, attempt?: number): Promise<AttemptRef> {
  const row = await readRow(
    db,
    AttemptRow,
    `select o."id" as "rolloutId", o."run_id" as "runId", coalesce($2::float8, o."attempt")::float8 as "attempt",
       o."attempt" as "newest", r."config" #>> '{model,name}' as "model",
       r."config" #>> '{agent,dialect}' as "dialect"
     from "rollouts" o join "runs" r on r."id" = o."run_id" where o."id" = $1`,
    [rolloutId, attempt ?? null],
  );
  if (!row) throw new NotFoundError("rollout", rolloutId);
  if (row.attempt > row.newest) throw new NotFoundError("attempt", `${rolloutId}/${row.attempt}`);
  return row;
}
