"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { metrics } from "@rolldeck/contracts/metrics";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Tooltip } from "../../design/tooltip.tsx";
import { formatCount, formatNumber } from "../../format/numbers.ts";

type Cost = NonNullable<RunDetail["cost"]>;
const parts = [
  { name: "gpu", metric: "cost/gpu", word: "GPUs" },
  { name: "sandbox", metric: "cost/sandbox", word: "Sandboxes" },
  { name: "judge", metric: "cost/judge", word: "Judges" },
  { name: "hosted", metric: "cost/hosted", word: "Hosted policy" },
] as const;

/** What the run has cost, by what, and what a trained group cost; every number says how it is made. */
export function CostLine({ cost, budget }: { cost: Cost; budget: number | null }): JSX.Element | null {
  const trpc = useTRPC();
  const catalogue = useQuery(trpc.catalogue.get.queryOptions(undefined, { staleTime: Number.POSITIVE_INFINITY }));
  // A sum without its currency would be told for a moment as something else than it is.
  if (catalogue.isPending) return null;
  const currency = catalogue.data?.prices?.currency ?? "";
  const isLowerBound = cost.unpriced > 0 || parts.some(({ name }) => cost[name] === null);
  return (
    <Tooltip content={<CostParts cost={cost} currency={currency} />}>
      <button type="button" className="figures text-sm text-g7 hover:text-g9" data-testid="run-cost">
        cost {isLowerBound && "at least "}
        {formatNumber(cost.total, currency)}
        {budget !== null && ` of ${formatNumber(budget, currency)}`}
        {cost.perTrainedGroup !== null && ` · ${formatNumber(cost.perTrainedGroup, currency)} a trained group`}
      </button>
    </Tooltip>
  );
}

/** What was used, and how each number is made; of what was not used, only the name. */
function CostParts({ cost, currency }: { cost: Cost; currency: string }): JSX.Element {
  const used = parts.filter(({ name }) => cost[name] !== 0);
  const unused = parts.filter(({ name }) => cost[name] === 0);
  return (
    <span className="flex flex-col gap-1">
      <span>
        By the end of step {formatCount(cost.step)}. {metrics["cost/total"].definition}
      </span>
      {used.map(({ name, metric, word }) => (
        <span key={name}>
          <span className="font-medium text-g9">
            {word} {cost[name] === null ? "no price" : formatNumber(cost[name], currency)}
          </span>
          : {metrics[metric].definition}
        </span>
      ))}
      {cost.unpriced > 0 && (
        <span>
          Prices missing for what was used: {formatCount(cost.unpriced)}. That use is not in the sum, so the cost is at
          least this.
        </span>
      )}
      {unused.length > 0 && <span>Not used: {unused.map(({ word }) => word).join(", ")}.</span>}
      {cost.perTrainedGroup !== null && (
        <span>
          <span className="font-medium text-g9">A trained group {formatNumber(cost.perTrainedGroup, currency)}</span>:{" "}
          {metrics["cost/per-trained-group"].definition}
        </span>
      )}
      {currency === "" && <span>The operator names no prices now: the currency is not known.</span>}
    </span>
  );
}
