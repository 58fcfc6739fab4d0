/** What a run that is a preflight says when it is over. */
import type { RunDetail, RunSummary } from "@rolldeck/contracts/api/runs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { overfitVerdict } from "@rolldeck/rl/overfit-verdict";
import { z } from "zod";
import { type Queryable, readRows } from "./rows.ts";

/** More steps than that a preflight has no use for. */
const mostSteps = 10_000;

export async function readPreflight(
  db: Queryable,
  { runId, status }: Pick<RunSummary, "runId" | "status">,
  { config }: { readonly config: Pick<RunConfig, "preflight"> },
): Promise<RunDetail["preflight"]> {
  if (config.preflight !== "overfit" || !endedRunStatuses.includes(status)) return null;
  const rows = await readRows(
    db,
    z.object({ value: z.number() }),
    `select "value" from "metric_points" where "run_id" = $1 and "name" = 'reward/mean'
       and "value" > '-Infinity' and "value" < 'Infinity' order by "step" limit ${mostSteps}`,
    [runId],
  );
  return overfitVerdict(rows.map(({ value }) => value));
}
