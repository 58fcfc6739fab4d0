/** Two to fifty runs side by side: what their configs differ in, their series, and their verdicts. */
import type { CompareRuns, Comparison } from "@rolldeck/contracts/api/runs";
import { NotFoundError } from "@rolldeck/contracts/errors";
import { metricDefinition } from "@rolldeck/contracts/metrics";
import { z } from "zod";
import { configDifferences } from "./config-differences.ts";
import { readSeries } from "./read-metrics.ts";
import { type Queryable, readRows } from "./rows.ts";
import { readSummaries } from "./run-summary.ts";

type Input = z.output<typeof CompareRuns>;
type Series = Awaited<ReturnType<typeof readSeries>>[number];
/** A chart never holds more than 10,000 points: the more runs, the fewer points each. */
const pointsPerChart = 10_000;
const pointsPerSeries = 600;

/** Runs in the order asked for; the first is the baseline. @throws NotFoundError */
export async function compareRuns(db: Queryable, input: Input): Promise<Comparison> {
  const runIds = [...new Set(input.runIds)];
  const runs = await readSummaries(db, runIds);
  const missing = runIds.find((runId) => !runs.some((run) => run.runId === runId));
  if (missing) throw new NotFoundError("run", missing);
  const rows = await readRows(
    db,
    z.object({ config: z.unknown() }),
    `select r."config" from unnest($1::text[]) with ordinality as wanted("id", "place") join "runs" r using ("id")
     order by wanted."place"`,
    [runIds],
  );
  const differences = configDifferences(rows.map((row) => row.config));
  const names = [...new Set(input.names)];
  const maxPoints = Math.min(pointsPerSeries, Math.floor(pointsPerChart / runIds.length));
  const series = await readSeries(db, runIds, { names, maxPoints });
  return {
    runs,
    configDifferences: differences,
    metrics: names.map((name) => {
      const own = series.filter((one) => one.name === name);
      return {
        name,
        series: own.map(({ runId, points }) => ({ runId, points })),
        verdict: own.map((one) => verdict(one)),
      };
    }),
    warnings: warningsFor(differences, series),
  };
}

/** `best` follows the metric's own direction; a metric with none has no best. */
function verdict({ runId, name, points }: Series): { runId: string; final: number | null; best: number | null } {
  const finite = points.filter((point) => point.value !== null);
  const { better } = metricDefinition(name);
  const final = finite.at(-1)?.value ?? null;
  if (better === "none" || finite.length === 0) return { runId, final, best: null };
  const ends = finite.flatMap((point) => (better === "higher" ? point.max : point.min) ?? []);
  return { runId, final, best: ends.reduce((a, b) => (better === "higher" ? Math.max(a, b) : Math.min(a, b))) };
}

const cautions: readonly (readonly [prefix: string, warning: string])[] = [
  ["seed", "Seeds differ: part of any difference is chance."],
  ["taskSets", "Task sets differ: rewards are not on one scale."],
  ["model.name", "Models differ."],
  ["agent.sampling.temperature", "Sampling temperatures differ: success and entropy move with it."],
  ["backend.name", "Backends differ: log-prob gap and loss may be defined differently."],
  ["backend.dialect", "Servers differ: log-prob gap and loss may be defined differently."],
  ["backend.lora", "What is trained differs: all weights, or adapters of different ranks."],
];

function warningsFor(differences: Comparison["configDifferences"], series: readonly Series[]): string[] {
  const warnings = cautions
    .filter(([prefix]) => differences.some(({ path }) => path === prefix || new RegExp(`^${prefix}[.[]`).test(path)))
    .map(([, warning]) => warning);
  const kinds = series.filter((one) => one.points.some((point) => point.nonFinite !== null));
  const affected = [...new Set(kinds.map((one) => one.name))];
  if (affected.length > 0)
    warnings.push(`NaN or infinite values are left out of final and best: ${affected.join(", ")}.`);
  return warnings;
}
