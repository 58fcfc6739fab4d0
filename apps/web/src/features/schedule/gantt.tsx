"use client";
/** Lanes, axis, strips and the one cursor over them. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { useRouter } from "next/navigation";
import { type JSX, useMemo, useState } from "react";
import { Crosshair, CrosshairContext } from "../../charts/crosshair.ts";
import { IconButton } from "../../design/button.tsx";
import { Icon } from "../../design/icon.tsx";
import { formatCount } from "../../format/numbers.ts";
import { formatDuration, formatUtc } from "../../format/times.ts";
import { useKeys } from "../shell/keys.ts";
import { CursorLine, CursorReadOut } from "./gantt-cursor.tsx";
import { GanttLanes } from "./gantt-lanes.tsx";
import { layOut } from "./gantt-layout.ts";
import { GanttLegend } from "./gantt-legend.tsx";
import { TimeAxis } from "./time-axis.tsx";
import { UseStrips } from "./use-strips.tsx";
import { useView } from "./use-view.ts";

export function Gantt({ run, schedule, width }: { run: RunDetail; schedule: Schedule; width: number }): JSX.Element {
  const router = useRouter();
  const [crosshair] = useState(() => new Crosshair());
  const [chosen, setChosen] = useState<number | null>(null);
  const layout = useMemo(() => layOut(schedule), [schedule]);
  const control = useView(schedule.toMs);
  const open = (lane: number) => {
    const rolloutId = schedule.rollouts.rolloutId[layout.order[lane] ?? -1];
    if (rolloutId) router.push(`/runs/${run.runId}/t/${rolloutId}`);
  };
  useKeys("Schedule", [
    { keys: "+", label: "Zoom in", run: () => control.zoomBy(0.5, crosshair.x ?? undefined) },
    { keys: "-", label: "Zoom out", run: () => control.zoomBy(2, crosshair.x ?? undefined) },
    { keys: "0", label: "Show all of the step", run: () => control.reset() },
  ]);
  const lane = chosen !== null && chosen < layout.order.length ? chosen : null;
  return (
    <CrosshairContext value={crosshair}>
      <section aria-label="Rollouts over time" className="flex min-w-0 flex-col gap-1">
        <div className="flex items-center gap-3">
          <h2 className="font-semibold whitespace-nowrap">Rollouts over time</h2>
          <span className="figures text-sm whitespace-nowrap text-g7" title={formatUtc(schedule.fromAt)}>
            {formatCount(schedule.rollouts.rolloutId.length)} rollouts, {formatDuration(schedule.toMs)}
            {schedule.over ? "" : " so far"}
          </span>
          <span className="flex-1" />
          <IconButton label="Zoom in (+)" onClick={() => control.zoomBy(0.5)}>
            <Icon name="plus" />
          </IconButton>
          <IconButton label="Zoom out (−)" disabled={control.isWhole} onClick={() => control.zoomBy(2)}>
            <Icon name="minus" />
          </IconButton>
          <IconButton label="Show all of the step (0)" disabled={control.isWhole} onClick={() => control.reset()}>
            <Icon name="fit" />
          </IconButton>
        </div>
        <CursorReadOut schedule={schedule} layout={layout} chosen={lane} />
        <div className="relative">
          <TimeAxis view={control.view} width={width} />
          <GanttLanes
            schedule={schedule}
            layout={layout}
            control={control}
            width={width}
            chosen={lane}
            onChoose={setChosen}
            onOpen={open}
          />
          <div className="mt-2">
            <UseStrips schedule={schedule} view={control.view} width={width} />
          </div>
          <Marks schedule={schedule} />
          <CursorLine view={control.view} width={width} />
        </div>
        <GanttLegend />
      </section>
    </CrosshairContext>
  );
}

/** What the step came to, in words: the picture's own lanes end there. */
function Marks({ schedule }: { schedule: Schedule }): JSX.Element | null {
  const { gatheredMs, updateStartedMs, over, toMs } = schedule;
  if (gatheredMs === null) return null;
  return (
    <p className="figures mt-1 text-sm text-g7">
      gathered after {formatDuration(gatheredMs)}
      {updateStartedMs !== null && `, update began ${formatDuration(updateStartedMs - gatheredMs)} later`}
      {over && updateStartedMs !== null && ` and took ${formatDuration(toMs - updateStartedMs)}`}
    </p>
  );
}
