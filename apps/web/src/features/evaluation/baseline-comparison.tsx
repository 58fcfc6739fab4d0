"use client";
import type { EvaluationReport } from "@rolldeck/contracts/api/evaluation";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useQuery } from "@tanstack/react-query";
import Link from "next/link";
import type { JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { cutText, formatCount, shortenId, thinSpace } from "../../format/numbers.ts";

type Difference = NonNullable<NonNullable<EvaluationReport["baseline"]>["success"]>;

/** The newest evaluation against another run's newest, over the instances that both scored. */
export function BaselineComparison({
  run,
  report,
  chosen,
  onChoose,
}: {
  run: RunDetail;
  /** null while the comparison is on its way. */
  report: EvaluationReport | null;
  chosen: string | null;
  onChoose(runId: string | null): void;
}): JSX.Element {
  const trpc = useTRPC();
  const runs = useQuery(trpc.runs.list.queryOptions({ limit: 100 }));
  const others = (runs.data?.items ?? []).filter(({ runId }) => runId !== run.runId);
  const own = run.config.evaluation.baseline;
  const value = chosen ?? own ?? "";
  return (
    <section aria-label="Against a baseline">
      <h2 className="mb-2 text-lg font-semibold">Against a baseline</h2>
      <label className="mb-2 flex flex-wrap items-center gap-2 text-sm text-g8">
        Baseline run
        <select
          value={value}
          onChange={(event) => onChoose(event.target.value === "" ? null : event.target.value)}
          className="h-8 max-w-[360px] rounded-md border border-g4 bg-g0 px-2 text-base"
        >
          <option value="">{own === null ? "none" : "this run's own setting"}</option>
          {value !== "" && !others.some(({ runId }) => runId === value) && (
            <option value={value}>{shortenId(value)}</option>
          )}
          {others.map(({ runId, name }) => (
            <option key={runId} value={runId}>
              {cutText(name, 60)} · {shortenId(runId)}
            </option>
          ))}
        </select>
      </label>
      {value !== "" && (report === null ? <Skeleton className="h-16" /> : <Differences report={report} />)}
    </section>
  );
}

function Differences({ report: { baseline } }: { report: EvaluationReport }): JSX.Element {
  if (baseline === null) return <p className="text-sm text-g7">One of the two runs has no evaluation to compare.</p>;
  if (baseline.success === null)
    return <p className="text-sm text-g7">The two runs share fewer than two scored instances.</p>;
  return (
    <>
      <Table label="Difference from the baseline">
        <thead>
          <tr>
            <Th>This run − baseline</Th>
            <Th right>Difference</Th>
            <Th right title="2.5 % and 97.5 % of the resampled means">
              95 % interval
            </Th>
            <Th right title="Two-sided: twice the smaller share of resamples on either side of 0">
              p
            </Th>
            <Th right>Shared instances</Th>
          </tr>
        </thead>
        <tbody>
          <DifferenceRow name="Success" of={baseline.success} percent />
          {baseline.reward && <DifferenceRow name="Reward" of={baseline.reward} />}
        </tbody>
      </Table>
      <p className="mt-2 text-sm text-g7">
        Paired bootstrap over instances, {formatCount(baseline.resamples)} resamples, against version{" "}
        {formatCount(baseline.version)} of{" "}
        <Link href={`/runs/${baseline.runId}`} className="text-accent-text hover:underline">
          {cutText(baseline.runName, 60)}
        </Link>
        .
      </p>
    </>
  );
}

function DifferenceRow({ name, of, percent }: { name: string; of: Difference; percent?: boolean }): JSX.Element {
  const sure = of.low > 0 || of.high < 0;
  const signed = percent ? signedPoints : signedNumber;
  return (
    <tr className="hover:bg-g1">
      <Td>{name}</Td>
      <Td right className={sure ? "font-semibold" : undefined}>
        {signed(of.difference)}
      </Td>
      <Td right>
        {signed(of.low)} … {signed(of.high)}
      </Td>
      <Td right>{of.pValue < 0.001 ? "< 0.001" : of.pValue.toFixed(3)}</Td>
      <Td right>{formatCount(of.pairs)}</Td>
    </tr>
  );
}

const sign = (value: number): string => (value < 0 ? "−" : "+");
const signedNumber = (value: number): string => `${sign(value)}${Math.abs(value).toFixed(3)}`;
/** Percentage points. */
const signedPoints = (value: number): string => `${sign(value)}${Math.abs(value * 100).toFixed(1)}${thinSpace}pp`;
