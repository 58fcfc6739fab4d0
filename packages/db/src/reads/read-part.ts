/** Where a step, a group or a rollout stands, for those who hold or cancel it. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { type Queryable, readRow } from "./rows.ts";

const statements = {
  step: `select s."run_id" as "runId", s."state" not in ('gathering', 'updating') as "over",
      exists (select from "groups" g where g."step_id" = s."id" and g."set_aside" is null) and not exists (
        select from "groups" g where g."step_id" = s."id" and g."set_aside" is null and not g."held") as "held"
    from "steps" s where s."id" = $1`,
  group: `select g."run_id" as "runId", s."state" not in ('gathering', 'updating') or g."set_aside" is not null as "over", g."held"
    from "groups" g join "steps" s on s."id" = g."step_id" where g."id" = $1`,
  rollout: `select r."run_id" as "runId", r."state" = 'settled' as "over", r."held" or g."held" as "held"
    from "rollouts" r join "groups" g on g."id" = r."group_id" where r."id" = $1`,
};

/** `held`: it or what it belongs to; a step is when all of its groups are. @throws NotFoundError */
export async function readPart(
  db: Queryable,
  part: keyof typeof statements,
  id: string,
): Promise<{ runId: string; held: boolean; over: boolean }> {
  const Row = z.object({ runId: z.string(), held: z.boolean(), over: z.boolean() });
  const row = await readRow(db, Row, statements[part], [id]);
  if (row === null) throw new NotFoundError(part, id);
  return row;
}
