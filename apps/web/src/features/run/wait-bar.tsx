"use client";
/** Who waits on whom: seconds of an average step spent gathering rollouts against updating weights, as one bar. */
import type { MetricSeries } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { formatFraction } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

const mean = (series: readonly MetricSeries[], name: string): number | null => {
  const values = series
    .find((each) => each.name === name)
    ?.points.flatMap((point) => (point.value === null ? [] : [point.value]));
  return values && values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
};

export function WaitBar({ series }: { series: readonly MetricSeries[] }): JSX.Element | null {
  const gather = mean(series, "time/gather");
  const update = mean(series, "time/update");
  if (gather === null || update === null || gather + update === 0) return null;
  const share = gather / (gather + update);
  return (
    <section aria-label="Who waits on whom" className="mx-4 mb-4 border-t border-g3 pt-3">
      <div className="mb-1 flex items-baseline justify-between text-sm">
        <span>
          <span className="mr-1.5 inline-block size-2 rounded-[2px]" style={{ background: "var(--stage-run)" }} />
          Gathering rollouts, the update waits{" "}
          <span className="num text-g7">
            {formatFraction(share)} · {formatDuration(gather * 1000)} a step
          </span>
        </span>
        <span>
          <span className="mr-1.5 inline-block size-2 rounded-[2px]" style={{ background: "var(--stage-update)" }} />
          Updating weights, rollouts wait{" "}
          <span className="num text-g7">
            {formatFraction(1 - share)} · {formatDuration(update * 1000)} a step
          </span>
        </span>
      </div>
      <div aria-hidden="true" className="flex h-2 gap-px overflow-hidden rounded-[2px]">
        <span style={{ width: `${share * 100}%`, background: "var(--stage-run)" }} />
        <span className="hatched flex-1" style={{ backgroundColor: "var(--stage-update)" }} />
      </div>
    </section>
  );
}
