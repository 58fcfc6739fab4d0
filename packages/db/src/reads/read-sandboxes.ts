/** Sandboxes as people see them: of one rollout, of a run, or one by its id. */
import {
  type ListRunSandboxes,
  type RolloutSandboxes,
  type RunSandboxes,
  SandboxInfo,
  sandboxStates,
} from "@rolldeck/contracts/api/sandboxes";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { readHead } from "./read-events.ts";
import { iso, type Queryable, readRow, readRows } from "./rows.ts";

const ofItsRollout = (column: string): string =>
  `(select ${column} from "rollouts" r join "groups" g on g."id" = r."group_id" where r."id" = "sandboxes"."rollout_id")`;
const columns = `"id" as "sandboxId", "run_id" as "runId", "rollout_id" as "rolloutId",
  ${ofItsRollout('g."instance_id"')} as "instanceId", ${ofItsRollout('r."sample"')} as "sample", "attempt", "purpose", "runtime", "image",
  "network", "state", "in_place" as "inPlace", case when "environment" then "uses" end as "uses",
  ${iso('"idle_since"')} as "idleSince", "reason", ${iso('"keep_until"')} as "keepUntil", "phases",
  ${iso('"created_at"')} as "createdAt", ${iso('"opened_at"')} as "openedAt", ${iso('"closed_at"')} as "closedAt"`;

const ofRollout = 100;

/** @throws NotFoundError for the rollout */
export async function readRolloutSandboxes(
  db: Queryable,
  rolloutId: string,
): Promise<z.output<typeof RolloutSandboxes>> {
  const known = await readRow(db, z.object({ id: z.string() }), `select "id" from "rollouts" where "id" = $1`, [
    rolloutId,
  ]);
  if (!known) throw new NotFoundError("rollout", rolloutId);
  const rows = await readRows(
    db,
    SandboxInfo,
    // Environments that are another rollout's by now were this one's, too.
    `select ${columns} from "sandboxes" where "rollout_id" = $1
       or "id" in (select "sandbox_id" from "sandbox_uses" where "rollout_id" = $1)
     order by "attempt" desc, "created_at" desc, "id" limit ${ofRollout + 1}`,
    [rolloutId],
  );
  return { rolloutId, sandboxes: rows.slice(0, ofRollout), more: rows.length > ofRollout };
}

/** @throws NotFoundError for the run */
export async function readRunSandboxes(
  db: Queryable,
  { runId, which, limit }: z.output<typeof ListRunSandboxes>,
): Promise<z.output<typeof RunSandboxes>> {
  if ((await readHead(db, runId)) === null) throw new NotFoundError("run", runId);
  const counted = await readRows(
    db,
    z.object({ state: z.enum(sandboxStates), count: z.int() }),
    `select "state", count(*)::int as "count" from "sandboxes" where "run_id" = $1 group by "state"`,
    [runId],
  );
  const rows = await readRows(
    db,
    SandboxInfo,
    `select ${columns} from "sandboxes"
     where "run_id" = $1 ${which === "live" ? `and "state" in ('opening', 'open', 'kept')` : ""}
     order by "created_at" desc, "id" limit $2`,
    [runId, limit + 1],
  );
  const counts = { opening: 0, open: 0, kept: 0, closed: 0, lost: 0 };
  for (const { state, count } of counted) counts[state] = count;
  return { runId, counts, sandboxes: rows.slice(0, limit), more: rows.length > limit };
}

/** @throws NotFoundError */
export async function readSandbox(db: Queryable, sandboxId: string): Promise<SandboxInfo> {
  const row = await readRow(db, SandboxInfo, `select ${columns} from "sandboxes" where "id" = $1`, [sandboxId]);
  if (!row) throw new NotFoundError("sandbox", sandboxId);
  return row;
}
