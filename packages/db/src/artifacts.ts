/**
 * Artifacts: what a call of a rollout gave in full. Invariants: written only under the rollout's current claim; the same artifact
 * written again takes the place of the first (a call may run again on another worker); content is kept gzipped, at most
 * `maxEvidenceBytes` of it, beside the size of the whole.
 */
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import {
  type ArtifactContent,
  ArtifactInfo,
  type ArtifactList,
  artifactNamePattern,
  maxEvidenceBytes,
} from "@rolldeck/contracts/api/artifacts";
import { FencedError, NotFoundError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { asBoundaryError } from "./database-error.ts";
import { readAttemptRef } from "./reads/attempt-ref.ts";
import { iso, type Queryable, readRow, readRows } from "./reads/rows.ts";

export interface NewArtifact {
  readonly runId: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly claim: number;
  readonly turn: number;
  /** The call in its turn. */
  readonly index: number;
  /** As `artifactNamePattern` has it. */
  readonly name: string;
  readonly mediaType: string;
  /** At most `maxEvidenceBytes`. */
  readonly content: Uint8Array;
  /** Bytes of all there was. */
  readonly wholeBytes: number;
}

// Shared with other writers of artifacts, but not with whoever takes the claim: until this is in, the claim stays.
const putSql = `
with holder as materialized (
  select id from rollouts where id = $1 and run_id = $2 and attempt = $3 and claim = $4 and state = 'active' for share
)
insert into artifacts (rollout_id, attempt, turn, index, name, media_type, bytes, stored_bytes, content)
select id, $3, $5, $6, $7, $8, $9, $10, $11 from holder
on conflict (rollout_id, attempt, turn, index, name) do update
set media_type = excluded.media_type, bytes = excluded.bytes, stored_bytes = excluded.stored_bytes,
  content = excluded.content, at = now()`;

/**
 * @throws FencedError when the claim is no longer current; BoundaryError("infrastructure") when the database is away;
 *   RangeError for a name or a size that the caller should not have asked for
 */
export async function putArtifact(db: Queryable, artifact: NewArtifact): Promise<void> {
  const { content, name } = artifact;
  if (content.length > maxEvidenceBytes) throw new RangeError(`an artifact of ${content.length} bytes is too large`);
  if (!artifactNamePattern.test(name)) throw new RangeError(`not a name for an artifact: ${JSON.stringify(name)}`);
  const values = [
    artifact.rolloutId,
    artifact.runId,
    artifact.attempt,
    artifact.claim,
    artifact.turn,
    artifact.index,
    name,
    artifact.mediaType,
    artifact.wholeBytes,
    content.length,
    await promisify(gzip)(content),
  ];
  let written: number | null;
  try {
    written = (await db.query(putSql, values)).rowCount;
  } catch (error) {
    throw asBoundaryError(error, "an artifact could not be written");
  }
  if (written !== 1) throw new FencedError(`rollout ${artifact.rolloutId}`);
}

const pageRows = 1000;
const infoColumns = `"turn", "index", "name", "media_type" as "mediaType", "bytes"::float8 as "bytes",
  "stored_bytes" as "storedBytes", ${iso('"at"')} as "at"`;

/** Those of one attempt after a turn, at most 1,000, whole turns. @throws NotFoundError */
export async function listArtifacts(
  db: Queryable,
  page: { readonly rolloutId: string; readonly attempt?: number | undefined; readonly after: number },
): Promise<z.infer<typeof ArtifactList>> {
  const { rolloutId, attempt } = await readAttemptRef(db, page.rolloutId, page.attempt);
  const rows = await readRows(
    db,
    ArtifactInfo,
    `select ${infoColumns} from "artifacts" where "rollout_id" = $1 and "attempt" = $2 and "turn" > $3
     order by "turn", "index", "name" limit ${pageRows + 1}`,
    [rolloutId, attempt, page.after],
  );
  const more = rows.length > pageRows;
  const whole = more ? rows.filter(({ turn }) => turn !== rows.at(-1)?.turn) : rows;
  // A turn that has more than a page of them is shown as far as it goes.
  return { rolloutId, attempt, artifacts: whole.length > 0 ? whole : rows.slice(0, pageRows), more };
}

const ContentRow = ArtifactInfo.extend({ content: z.instanceof(Uint8Array) });

/** @throws NotFoundError */
export async function readArtifact(
  db: Queryable,
  place: {
    readonly rolloutId: string;
    readonly attempt?: number | undefined;
    readonly turn: number;
    readonly index: number;
    readonly name: string;
  },
): Promise<ArtifactContent> {
  const { rolloutId, attempt } = await readAttemptRef(db, place.rolloutId, place.attempt);
  const row = await readRow(
    db,
    ContentRow,
    `select ${infoColumns}, "content" from "artifacts"
     where "rollout_id" = $1 and "attempt" = $2 and "turn" = $3 and "index" = $4 and "name" = $5`,
    [rolloutId, attempt, place.turn, place.index, place.name],
  );
  if (!row) throw new NotFoundError("artifact", `${rolloutId}/${place.turn}/${place.index}/${place.name}`);
  const { content, ...info } = row;
  return { info, content: await promisify(gunzip)(content) };
}

/** The newest of that name that an attempt has, exact bytes; null when it has none. */
export async function readEvidence(
  db: Queryable,
  attempt: { readonly rolloutId: string; readonly attempt: number },
  name: string,
): Promise<Uint8Array | null> {
  const row = await readRow(
    db,
    z.object({ content: z.instanceof(Uint8Array) }),
    `select "content" from "artifacts" where "rollout_id" = $1 and "attempt" = $2 and "name" = $3
     order by "turn" desc, "index" desc limit 1`,
    [attempt.rolloutId, attempt.attempt, name],
  );
  return row === null ? null : promisify(gunzip)(row.content);
}
