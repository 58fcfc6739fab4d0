"use client";
/** Where the time of a step's rollouts goes, as one bar: waits hatched, work filled, each with its definition. */
import { type Schedule, type TimePart, timePartNames, timeParts } from "@rolldeck/contracts/api/schedule";
import type { JSX } from "react";
import { Tooltip } from "../../design/tooltip.tsx";
import { formatFraction } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

const colours: Record<TimePart, string> = {
  initSlot: "var(--stage-init)",
  sandbox: "var(--stage-update)",
  runSlot: "var(--stage-run)",
  gradeSlot: "var(--stage-evaluate)",
  admission: "var(--g8)",
  setUp: "var(--stage-init)",
  model: "var(--stage-run)",
  tools: "var(--run-2)",
  loop: "var(--run-7)",
  grading: "var(--stage-evaluate)",
  lost: "var(--status-failed)",
  siblings: "var(--g6)",
  trainer: "var(--stage-update)",
};
const waits = timePartNames.filter((part) => timeParts[part].kind === "wait");
const works = timePartNames.filter((part) => timeParts[part].kind !== "wait");
/** Shares below this have no entry of their own: the table view and the API have them. */
const least = 0.0005;

export function TimeBar({ time, rollouts }: { time: Schedule["time"]; rollouts: number }): JSX.Element | null {
  const all = timePartNames.reduce((sum, part) => sum + time[part], 0);
  if (all <= 0 || rollouts === 0) return null;
  const shown = [...works, ...waits].filter((part) => time[part] / all >= least);
  const working = works.reduce((sum, part) => sum + (part === "lost" ? 0 : time[part]), 0) / all;
  return (
    <section aria-label="Where time goes" className="flex flex-col gap-1.5">
      <h2 className="flex flex-wrap items-baseline gap-x-3 font-semibold">
        Where time goes
        <span className="figures text-sm font-normal text-g7">
          {formatFraction(working)} working, {formatDuration(all / rollouts)} a rollout from the step's start to its end
        </span>
      </h2>
      <div aria-hidden="true" className="flex h-4 gap-px overflow-hidden rounded-[3px]">
        {shown.map((part) => (
          <span
            key={part}
            title={`${timeParts[part].label} ${formatFraction(time[part] / all)}`}
            className={timeParts[part].kind === "wait" ? "waiting-fill" : undefined}
            style={{
              width: `${(time[part] / all) * 100}%`,
              ["--fill" as string]: colours[part],
              background: timeParts[part].kind === "wait" ? undefined : colours[part],
            }}
          />
        ))}
      </div>
      <dl className="grid grid-cols-[repeat(auto-fill,minmax(256px,1fr))] gap-x-6">
        {shown.map((part) => (
          <Tooltip key={part} content={timeParts[part].definition}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: its definition is read on focus */}
            <div tabIndex={0} data-part={part} className="flex h-6 items-center gap-1.5 text-sm">
              <span
                aria-hidden="true"
                className={`size-2.5 shrink-0 rounded-[2px] ${timeParts[part].kind === "wait" ? "waiting-fill" : ""}`}
                style={{
                  ["--fill" as string]: colours[part],
                  background: timeParts[part].kind === "wait" ? undefined : colours[part],
                }}
              />
              <dt className="truncate">
                {timeParts[part].kind === "wait" ? "waits: " : ""}
                {timeParts[part].label}
              </dt>
              <dd
                className="num ml-auto whitespace-nowrap text-g7"
                title="Share of all rollouts' time · time of a rollout in the mean"
              >
                {formatFraction(time[part] / all)} · {formatDuration(time[part] / rollouts)}
              </dd>
            </div>
          </Tooltip>
        ))}
      </dl>
    </section>
  );
}
