/** Parallel arrays over tokens [start, end) of one attempt, at most 16,384 at once. Missing is null, never 0. */
import { maxTokenPage, type TokenPage } from "@rolldeck/contracts/api/rollouts";
import { type Ending, endingNames, endingRule, type MaskReason } from "@rolldeck/contracts/endings";
import { z } from "zod";
import { type Queryable, readRow, readRows } from "./rows.ts";
import { type PlacedSegment, readLayout, readSegmentTokens, totalTokens } from "./segment-layout.ts";
import { annotate, readAnnotatedRows } from "./training-annotations.ts";

type Page = z.output<typeof TokenPage>;
/** The page without the text of each token, which needs the tokenizer. */
export type StoredTokens = Omit<Page, "texts">;

export async function readTokens(
  db: Queryable,
  page: { readonly rolloutId: string; readonly attempt: number; readonly start: number; readonly end?: number },
): Promise<StoredTokens> {
  const { rolloutId, attempt } = page;
  const layout = await readLayout(db, rolloutId, attempt);
  const total = totalTokens(layout);
  const start = Math.min(page.start, total);
  const end = Math.max(start, Math.min(page.end ?? total, total, start + maxTokenPage));
  const touched = layout.filter((segment) => segment.start < end && segment.start + segment.length > start);
  const tokens = await readSegmentTokens(db, rolloutId, attempt, touched[0]?.index ?? 0, touched.at(-1)?.index ?? -1);
  const turnEnds = await readTurnEnds(db, rolloutId, attempt);
  const annotations = annotate(await readAnnotatedRows(db, rolloutId, attempt), start, end);
  const untrained = await untrainedReason(db, rolloutId, attempt);
  const { advantages, trainerLogprobs } = annotations;
  const lists = emptyLists();
  for (const segment of touched) {
    const own = tokens.get(segment.index);
    const turn = turnOf(segment, turnEnds);
    const from = Math.max(start, segment.start) - segment.start;
    const to = Math.min(end, segment.start + segment.length) - segment.start;
    for (let at = from; at < to; at++) {
      const known = annotations.reasons[segment.start + at - start];
      lists.ids.push(own?.tokens[at] ?? 0);
      lists.origins.push(segment.origin);
      lists.turns.push(turn);
      lists.logprobs.push(own?.logprobs?.[at] ?? null);
      lists.maskReasons.push(known === undefined ? unplannedReason(segment, untrained) : known);
      lists.policyVersions.push(segment.policyVersion);
    }
  }
  return { rolloutId, attempt, start, total, ...lists, advantages, trainerLogprobs };
}

type Lists = Pick<StoredTokens, "ids" | "origins" | "turns" | "logprobs" | "maskReasons" | "policyVersions">;
const emptyLists = (): Lists => ({
  ids: [],
  origins: [],
  turns: [],
  logprobs: [],
  maskReasons: [],
  policyVersions: [],
});

/** The turn whose prompt or answer first holds the segment; what follows the last answer belongs to the turn to come. */
function turnOf(segment: PlacedSegment, turnEnds: readonly { turn: number; sampledSegment: number }[]): number {
  const turn = turnEnds.find(({ sampledSegment }) => segment.index <= sampledSegment);
  return turn?.turn ?? (turnEnds.at(-1)?.turn ?? -1) + 1;
}

const readTurnEnds = (db: Queryable, rolloutId: string, attempt: number) =>
  readRows(
    db,
    z.object({ turn: z.int(), sampledSegment: z.int() }),
    `select "turn", "sampled_segment" as "sampledSegment" from "transitions"
     where "rollout_id" = $1 and "attempt" = $2 order by "turn"`,
    [rolloutId, attempt],
  );

/** Why a token that no training row holds will not be trained; null while it may still be. */
function unplannedReason(segment: PlacedSegment, untrained: MaskReason | null): MaskReason | null {
  return segment.origin === "sampled" ? untrained : segment.origin;
}

async function untrainedReason(db: Queryable, rolloutId: string, attempt: number): Promise<MaskReason | null> {
  const row = await readRow(
    db,
    z.object({
      ending: z.enum(endingNames).nullable(),
      scored: z.boolean(),
      settled: z.boolean(),
      superseded: z.boolean(),
      trainCut: z.boolean().nullable(),
    }),
    `select o."ending", o."reward" is not null as "scored", o."state" = 'settled' as "settled",
       o."attempt" > $2 as "superseded", (r."config" #>> '{algorithm,trainCut}')::boolean as "trainCut"
     from "rollouts" o join "runs" r on r."id" = o."run_id" where o."id" = $1`,
    [rolloutId, attempt],
  );
  if (!row) return null;
  if (row.superseded) return "ending-failed";
  if (!row.settled || row.ending === null) return null;
  return reasonOfEnding(row.ending, row.scored, row.trainCut ?? false);
}

function reasonOfEnding(ending: Ending, scored: boolean, trainCut: boolean): MaskReason | null {
  const rule = endingRule(ending);
  if (rule.kind === "cut" && !trainCut) return "ending-cut";
  if (!rule.trained && rule.kind !== "cut") return "ending-failed";
  return scored ? null : "no-reward";
}
