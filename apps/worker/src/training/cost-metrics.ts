/** What a run has cost so far, as points of the step that ends; nothing where the operator names no prices. */
import type { MetricName } from "@rolldeck/contracts/metrics";
import type { Prices } from "@rolldeck/contracts/prices";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { readRunUsage } from "@rolldeck/db/reads/read-run-usage";
import { chargedDevices, isHosted, runCost } from "@rolldeck/dispatch/run-cost";

export async function costMetrics(
  { pool, prices }: { readonly pool: Pool; readonly prices: Prices | null },
  { runId, config }: { readonly runId: string; readonly config: Pick<RunConfig, "backend"> },
): Promise<Partial<Record<MetricName, number>>> {
  if (prices === null) return {};
  const usage = await readRunUsage(pool, { runId, hosted: isHosted(config.backend.name) });
  if (usage === null) return {};
  const gpuHours = usage.gpuHours * chargedDevices(config.backend.fleet);
  const { parts, total, perTrainedGroup, unpriced } = runCost({ ...usage, gpuHours }, prices);
  const values = {
    "cost/total": total,
    "cost/gpu": parts.gpu,
    "cost/sandbox": parts.sandbox,
    "cost/judge": parts.judge,
    "cost/hosted": parts.hosted,
    "cost/per-trained-group": perTrainedGroup,
    "cost/unpriced": unpriced.length > 0 ? unpriced.length : null,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
