/** The step that a group belongs to now. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { stepStates } from "@rolldeck/contracts/lifecycle";
import { setAsideReasons } from "@rolldeck/contracts/plan";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

const Row = z.object({
  runId: z.string(),
  stepId: z.string(),
  state: z.enum(stepStates),
  setAside: z.enum(setAsideReasons).nullable(),
});

/** @throws NotFoundError */
export async function readGroupPlace(db: Queryable, groupId: string): Promise<z.output<typeof Row>> {
  const row = await readRow(
    db,
    Row,
    `select g."run_id" as "runId", g."step_id" as "stepId", s."state", g."set_aside" as "setAside"
     from "groups" g join "steps" s on s."id" = g."step_id" where g."id" = $1`,
    [groupId],
  );
  if (row === null) throw new NotFoundError("group", groupId);
  return row;
}
