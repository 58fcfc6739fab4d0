"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import { parseAsString, useQueryState } from "nuqs";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount } from "../../format/numbers.ts";
import { unlessFrozen } from "../run/unless-frozen.ts";
import { BaselineComparison } from "./baseline-comparison.tsx";
import { ScoresTable } from "./scores-table.tsx";

/** What the run's evaluations measured, newest first, and how it compares with another run. */
export function EvaluationTab({ run, frozen }: { run: RunDetail; frozen: boolean }): JSX.Element {
  const trpc = useTRPC();
  const [baseline, setBaseline] = useQueryState("baseline", parseAsString);
  const report = useQuery(
    trpc.runs.evaluation.queryOptions(
      { runId: run.runId, baseline },
      {
        enabled: unlessFrozen(frozen),
        refetchInterval: run.endedAt === null ? 10_000 : false,
        // The scores don't change with the baseline.
        placeholderData: (known) => known,
      },
    ),
  );
  if (report.error && !report.data)
    return (
      <div className="p-4">
        <QueryError query={report} doing="load the evaluations" />
        {baseline !== null && (
          <Button className="mt-3" onClick={() => void setBaseline(null)}>
            Leave out the baseline
          </Button>
        )}
      </div>
    );
  if (!report.data) return <Skeleton className="m-4 h-40" />;
  const { samples, samplesPerInstance } = run.config.evaluation;
  if (report.data.evaluations.length === 0)
    return (
      <EmptyState title="Nothing was measured yet">
        {samples === 0 ? (
          <p>
            This run measures nothing on held-out instances: its setting evaluation.samples is 0. Relaunch it with a
            number above 0 to see success with an interval here.
          </p>
        ) : (
          <p>
            Each evaluation takes {formatCount(samples)} held-out instances, {formatCount(samplesPerInstance)}{" "}
            {samplesPerInstance === 1 ? "rollout" : "rollouts"} of each. The first comes as soon as a policy version
            serves.
          </p>
        )}
      </EmptyState>
    );
  return (
    <div className="flex max-w-[1080px] flex-col gap-6 p-4">
      <QueryError query={report} doing="refresh the evaluations" />
      <ScoresTable report={report.data} manySets={run.config.taskSets.length > 1} />
      <BaselineComparison
        run={run}
        report={report.isPlaceholderData ? null : report.data}
        chosen={baseline}
        onChoose={(id) => void setBaseline(id)}
      />
    </div>
  );
}
