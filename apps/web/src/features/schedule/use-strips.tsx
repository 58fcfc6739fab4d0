"use client";
/** Slots, sandboxes and calls of the model in use, beneath the lanes and on the same axis: used of size. */
import type { Schedule, UseLane } from "@rolldeck/contracts/api/schedule";
import type { JSX } from "react";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import type { View } from "./gantt-layout.ts";
import { gutter, margin } from "./gutter.ts";

type Lane = Schedule["use"]["lanes"][number];
const stripHeight = 34;

export const laneWords: Record<
  UseLane,
  { readonly label: string; readonly colour: string; readonly definition: string }
> = {
  init: {
    label: "Init slots",
    colour: "var(--stage-init)",
    definition: "Rollouts that a worker has in the init stage.",
  },
  run: { label: "Run slots", colour: "var(--stage-run)", definition: "Rollouts that a worker has in the run stage." },
  evaluate: {
    label: "Grading slots",
    colour: "var(--stage-evaluate)",
    definition: "Rollouts that a worker has in the evaluate stage.",
  },
  sandbox: {
    label: "Sandboxes",
    colour: "var(--stage-update)",
    definition: "Sandboxes that are there: of this run filled, of all runs behind it.",
  },
  model: {
    label: "Model calls",
    colour: "var(--origin-sampled)",
    definition: "Calls of the model under way, those that wait inside the engine included.",
  },
};

export function UseStrips({ schedule, view, width }: { schedule: Schedule; view: View; width: number }): JSX.Element {
  return (
    <ul aria-label="In use" className="flex flex-col gap-1">
      {schedule.use.lanes.map((lane) => (
        <Strip key={lane.lane} lane={lane} sliceMs={schedule.use.sliceMs} view={view} width={width} />
      ))}
    </ul>
  );
}

const peak = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);

function Strip({
  lane,
  sliceMs,
  view,
  width,
}: {
  lane: Lane;
  sliceMs: number;
  view: View;
  width: number;
}): JSX.Element {
  const words = laneWords[lane.lane];
  const inner = Math.max(10, width - gutter - margin);
  const shown = lane.allRuns ?? lane.mean;
  const most = peak(shown);
  // A size that is never neared would press what is used flat: then the peak is the height.
  const top = lane.size !== null && lane.size <= most * 3 ? Math.max(lane.size, most) : Math.max(1, most * 1.15);
  const x = (ms: number) => gutter + ((ms - view.fromMs) / Math.max(1e-9, view.toMs - view.fromMs)) * inner;
  const y = (count: number) => stripHeight - 1 - (count / top) * (stripHeight - 3);
  const area = (values: readonly number[]) => {
    const steps = values.map(
      (value, at) => `L${x(at * sliceMs).toFixed(1)} ${y(value).toFixed(1)}H${x((at + 1) * sliceMs).toFixed(1)}`,
    );
    return `M${x(0).toFixed(1)} ${stripHeight - 1}${steps.join("")}V${stripHeight - 1}Z`;
  };
  const mean = lane.mean.reduce((sum, value) => sum + value, 0) / Math.max(1, lane.mean.length);
  const ofSize = lane.size === null ? "" : ` of ${formatCount(lane.size)}`;
  return (
    <li className="relative" style={{ height: stripHeight }} data-lane={lane.lane}>
      <div
        className="absolute inset-y-0 left-0 flex flex-col justify-center pr-2"
        style={{ width: gutter }}
        title={`${words.definition}${lane.bound ? ` Bounded by ${lane.bound}${ofSize}.` : ""} Mean ${formatNumber(mean)}, peak ${formatNumber(peak(lane.mean))}.`}
      >
        <span className="truncate text-sm leading-4">{words.label}</span>
        <span className="num truncate text-xs leading-4 text-g7">
          mean {formatNumber(mean)}
          {ofSize}
        </span>
      </div>
      <svg
        width={width}
        height={stripHeight}
        role="img"
        aria-label={`${words.label}: ${formatNumber(mean)}${ofSize} in the mean, ${formatNumber(peak(lane.mean))} at most`}
      >
        <clipPath id={`strip-${lane.lane}`}>
          <rect x={gutter} y="0" width={inner} height={stripHeight} />
        </clipPath>
        <g clipPath={`url(#strip-${lane.lane})`}>
          <rect x={gutter} y="0" width={inner} height={stripHeight - 1} fill="var(--g1)" />
          {lane.allRuns && <path d={area(lane.allRuns)} fill={words.colour} opacity="0.25" />}
          <path d={area(lane.mean)} fill={words.colour} opacity="0.8" />
          {lane.size !== null && lane.size <= top && (
            <line
              x1={gutter}
              x2={gutter + inner}
              y1={y(lane.size)}
              y2={y(lane.size)}
              stroke="var(--g7)"
              strokeDasharray="3 3"
            />
          )}
          <line x1={gutter} x2={gutter + inner} y1={stripHeight - 0.5} y2={stripHeight - 0.5} stroke="var(--g4)" />
        </g>
      </svg>
    </li>
  );
}
