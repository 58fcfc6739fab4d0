/**
 * Checkpoints that are served. Only a key's hash is stored; a serving that was stopped never answers again; who starts and who stops one
 * is in the run's log, by the same write.
 */
import { checkpointId } from "@rolldeck/contracts/api/checkpoints";
import { type Serving, servingPath } from "@rolldeck/contracts/api/servings";
import { NotFoundError } from "@rolldeck/contracts/errors";
import type pg from "pg";
import { z } from "zod";
import { hashSecret, newSecret } from "./auth/secret-text.ts";
import { eventLog } from "./hot/event-log.ts";
import { newId } from "./new-id.ts";
import { iso, type Queryable, readRow, readRows } from "./reads/rows.ts";
import { withServingsLock } from "./servings-lock.ts";

export const servingKeyPrefix = "rds_";
/** More than that would wait for one another's memory on the GPU worker. */
export const mostServings = 8;

const Row = z.object({
  servingId: z.string(),
  runId: z.string(),
  runName: z.string(),
  version: z.int(),
  startedBy: z.string(),
  startedAt: z.string(),
  lastUsedAt: z.string().nullable(),
});
const columns = `s."id" as "servingId", s."run_id" as "runId", r."name" as "runName", s."version", s."started_by" as "startedBy",
  ${iso('s."started_at"')} as "startedAt", ${iso('s."last_used_at"')} as "lastUsedAt"`;
const shown = (row: z.infer<typeof Row>): Serving => ({
  ...row,
  checkpoint: checkpointId(row.runId, row.version),
  path: servingPath(row.servingId),
});

/** SQL condition: checkpoint `c` is served. @param c alias of a row of checkpoints */
export const isServedSql = (c: string): string =>
  `exists (select from servings v where v.run_id = ${c}.run_id and v.version = ${c}.version and v.stopped_at is null)`;

/**
 * @param by who asks
 * @returns null when that many are served already; else the serving with its key, which is not kept
 * @throws NotFoundError when the run has no such checkpoint (any more)
 */
export async function startServing(
  pool: pg.Pool,
  at: { readonly runId: string; readonly version: number },
  by: string,
): Promise<(Serving & { readonly key: string }) | null> {
  const key = newSecret(servingKeyPrefix);
  const id = newId();
  const { found, made } = await withServingsLock(pool, (client) => insertServing(client, { id, key, ...at, by }));
  if (!found) throw new NotFoundError("checkpoint", checkpointId(at.runId, at.version));
  if (!made) return null;
  const serving = await readRow(
    pool,
    Row,
    `select ${columns} from "servings" s join "runs" r on r."id" = s."run_id" where s."id" = $1`,
    [id],
  );
  return serving && { ...shown(serving), key };
}

/** @param from CTE that has run_id and version @param by SQL text: who asks */
const servedEvent = (from: string, served: boolean, by: string): string => `
happened as materialized (
  select 1 as ord, run_id, 'checkpoint-served' as type, null::text as rollout_id,
    jsonb_build_object('type', 'checkpoint-served', 'version', version, 'served', ${served}, 'by', ${by}) as body
  from ${from}
),
${eventLog()}`;

const startSql = `
with run as materialized (select id from runs where id = $2 for no key update),
found as materialized (
  select c.run_id, c.version from checkpoints c join run on run.id = c.run_id
  where c.version = $3 and c.state = 'complete' for no key update of c
),
made as (
  insert into servings (id, run_id, version, key_hash, started_by)
  select $1::text, run_id, version, $4::text, $5::text from found
  where (select count(*) from servings where stopped_at is null) < ${mostServings} returning run_id, version
),
${servedEvent("made", true, "$5::text")}
select exists (select from found) as found, exists (select from made) as made, (select count(sent) from notified) as notified`;

async function insertServing(
  client: pg.PoolClient,
  serving: Readonly<Record<"id" | "runId" | "key" | "by", string>> & { readonly version: number },
): Promise<{ readonly found: boolean; readonly made: boolean }> {
  const { id, runId, version, key, by } = serving;
  const values = [id, runId, version, hashSecret(key), by];
  const { rows } = await client.query<{ found: boolean; made: boolean }>(startSql, values);
  return { found: rows[0]?.found === true, made: rows[0]?.made === true };
}

/** Those that answer, newest first. */
export async function listServings(db: Queryable): Promise<Serving[]> {
  const rows = await readRows(
    db,
    Row,
    `select ${columns} from "servings" s join "runs" r on r."id" = s."run_id" where s."stopped_at" is null
     order by s."started_at" desc, s."id" desc`,
  );
  return rows.map(shown);
}

const stopSql = `
with stopped as (
  update servings set stopped_at = now() where id = $1 and stopped_at is null returning run_id, version
),
${servedEvent("stopped", false, "$2::text")}
select exists (select from servings where id = $1) as known, (select count(sent) from notified) as notified`;

/** Stopping one that was stopped changes nothing. @param by who asks @throws NotFoundError */
export async function stopServing(pool: pg.Pool, servingId: string, by: string): Promise<void> {
  const { rows } = await pool.query<{ known: boolean }>(stopSql, [servingId, by]);
  if (!rows[0]?.known) throw new NotFoundError("serving", servingId);
}

const Served = z.object({
  runId: z.string(),
  path: z.string(),
  model: z.string(),
  chatTemplate: z.string().nullable(),
  thinking: z.boolean().nullable(),
});
export type Served = z.infer<typeof Served>;

/** What a key opens; null: no such serving, another's key, or it was stopped. The time of the use is kept to the minute. */
export async function findServed(pool: pg.Pool, servingId: string, key: string): Promise<Served | null> {
  const served = await readRow(
    pool,
    Served,
    `select s."run_id" as "runId", c."path", r."config" #>> '{model,name}' as "model", r."config" #>> '{model,chatTemplate}' as "chatTemplate",
       (r."config" #>> '{model,thinking}')::boolean as "thinking"
     from "servings" s join "runs" r on r."id" = s."run_id"
       join "checkpoints" c on c."run_id" = s."run_id" and c."version" = s."version" and c."state" = 'complete'
     where s."id" = $1 and s."key_hash" = $2 and s."stopped_at" is null`,
    [servingId, hashSecret(key)],
  );
  if (served !== null)
    await pool.query(
      `update servings set last_used_at = now()
       where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')`,
      [servingId],
    );
  return served;
}

/** Which of these answer still. */
export async function stillServed(db: Queryable, servingIds: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await readRows(
    db,
    Row.pick({ servingId: true }),
    `select "id" as "servingId" from "servings" where "id" = any($1::text[]) and "stopped_at" is null`,
    [servingIds],
  );
  return new Set(rows.map(({ servingId }) => servingId));
}
