/** Whether a comparison's numbers are the same wherever they are looked at: in the API, made again from stored rows, on the page. */
import { ApiProblem } from "@rolldeck/client/api-problem";
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { ComparisonDetail } from "@rolldeck/contracts/api/comparisons";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { sharedMetricNames } from "@rolldeck/contracts/shared-metrics";
import { sharedMetrics } from "@rolldeck/rl/shared-metrics";
import { formatInUnit, formatNumber } from "../../../apps/web/src/format/numbers.ts";
import { openSignedIn } from "../../walks/testing/browser.ts";

type Shared = ReturnType<typeof sharedMetrics>;

/** None where the step's update is an outside trainer's. */
async function storedRows(rolldeck: Rolldeck, runId: string, step: number): Promise<BatchRow[]> {
  const rows: BatchRow[] = [];
  try {
    for await (const row of rolldeck.readStepBatch(runId, step)) rows.push(row);
  } catch (error) {
    if (!(error instanceof ApiProblem && error.status === 409)) throw error;
  }
  return rows;
}

/** A step's shared numbers, from what is stored of it. */
export async function recomputed(rolldeck: Rolldeck, runId: string, step: number): Promise<Shared> {
  const rows = await storedRows(rolldeck, runId, step);
  const { groups } = await rolldeck.readMatrix({ runId, purpose: "train", step });
  const rollouts = groups.filter(({ setAside }) => setAside === null).flatMap(({ cells }) => cells);
  return sharedMetrics(rows, rollouts);
}

/** As the comparison's page gets them. */
function shown({ compared }: ComparisonDetail, runId: string, step: number): Shared {
  const points = sharedMetricNames.map((name) => {
    const series = compared.metrics.find((metric) => metric.name === name)?.series.find((each) => each.runId === runId);
    return [name, series?.points.find((point) => point.step === step)?.value ?? null] as const;
  });
  return Object.fromEntries(points.filter(([, value]) => value !== null));
}

/**
 * Names the first number that differs, to the bit; of a run whose trainer is outside only those count that are there.
 * @returns null when all agree
 */
export async function firstDisagreement(
  rolldeck: Rolldeck,
  detail: ComparisonDetail,
  run: { readonly runId: string; readonly steps: number; readonly outside: boolean },
): Promise<string | null> {
  for (let step = 1; step <= run.steps; step++) {
    const [api, again] = [shown(detail, run.runId, step), await recomputed(rolldeck, run.runId, step)];
    const names = sharedMetricNames.filter((name) => !run.outside || name in api);
    const wrong = names.find((name) => api[name] !== again[name]);
    if (wrong !== undefined)
      return `${run.runId}, step ${step}: ${wrong} is ${api[wrong]}, and ${again[wrong]} when made again`;
  }
  return null;
}

/** What the page's table has to say of each run, from the API's own numbers. */
function expectedCells({ compared }: ComparisonDetail, runId: string): string[] {
  const final = (name: (typeof sharedMetricNames)[number]) =>
    compared.metrics.find((metric) => metric.name === name)?.verdict.find((each) => each.runId === runId)?.final ??
    null;
  return [
    formatInUnit(final("shared/reward"), "reward"),
    formatInUnit(final("shared/success"), "fraction"),
    formatNumber(final("shared/mismatch-logprob")),
    formatNumber(final("shared/mismatch-prob")),
  ];
}

/** @returns what the page shows otherwise than the API says, or null */
export async function pageDisagreement(link: string, page: string, detail: ComparisonDetail): Promise<string | null> {
  const opened = await openSignedIn(link);
  try {
    await opened.page.goto(page);
    const table = opened.page.getByRole("table", { name: "Variants" });
    for (const { label, runId } of detail.variants) {
      const row = table.getByRole("row").filter({ has: opened.page.getByRole("link", { name: label, exact: true }) });
      // The page asks for its numbers once it is there.
      await row.waitFor({ timeout: 120_000 });
      const cells = (await row.getByRole("cell").allInnerTexts()).map((text) => text.trim());
      const expected = expectedCells(detail, runId);
      const at = cells.findIndex((_, from) => expected.every((text, offset) => cells[from + offset] === text));
      if (at === -1) return `${label}: the page says ${cells.join(" | ")}, the API ${expected.join(" | ")}`;
    }
    return opened.pageErrors[0] ?? null;
  } finally {
    await opened.browser.close();
  }
}

/** Rows of the step's first `count` rollouts, in the order in which they are stored. */
export async function rowsOfRollouts(
  rolldeck: Rolldeck,
  runId: string,
  step: number,
  count: number,
): Promise<BatchRow[]> {
  const rows = await storedRows(rolldeck, runId, step);
  const chosen = new Set([...new Set(rows.map(({ rolloutId }) => rolloutId))].slice(0, count));
  if (chosen.size < count)
    throw new Error(`step ${step} of ${runId} has rows of ${chosen.size} rollouts, not ${count}`);
  return rows.filter(({ rolloutId }) => chosen.has(rolloutId));
}
