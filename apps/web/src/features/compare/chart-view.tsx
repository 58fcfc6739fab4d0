"use client";
/** How the charts of several runs are drawn: smoothing, scale, what is hidden. All of it is in the address. */
import { parseAsArrayOf, parseAsBoolean, parseAsInteger, parseAsString, useQueryStates } from "nuqs";
import type { JSX } from "react";
import { nextSmoothing, smoothingLevels } from "../../charts/smooth.ts";
import { Segmented } from "../../design/segmented.tsx";
import { useKeys } from "../shell/keys.ts";

export interface ChartView {
  readonly smoothing: number;
  readonly log: boolean;
  /** Ids of runs whose lines are not drawn. */
  readonly hidden: readonly string[];
  setSmoothing(smoothing: number): void;
  setLog(log: boolean): void;
  setHidden(hidden: readonly string[]): void;
}

/** With its keys, under `title` in the key sheet. */
export function useChartView(title: string): ChartView {
  const [view, setView] = useQueryStates({
    smooth: parseAsInteger.withDefault(0),
    log: parseAsBoolean.withDefault(false),
    hidden: parseAsArrayOf(parseAsString).withDefault([]),
  });
  const smoothing: number = smoothingLevels.find((level) => level * 100 === view.smooth) ?? 0;
  const setSmoothing = (level: number) => void setView({ smooth: level * 100 || null });
  const setLog = (log: boolean) => void setView({ log: log || null });
  useKeys(title, [
    { keys: "s", label: "Smoothing", run: () => setSmoothing(nextSmoothing(smoothing)) },
    { keys: "y", label: "Log scale", run: () => setLog(!view.log) },
  ]);
  return {
    smoothing,
    log: view.log,
    hidden: view.hidden,
    setSmoothing,
    setLog,
    setHidden: (hidden) => void setView({ hidden: hidden.length > 0 ? [...hidden] : null }),
  };
}

export function ChartViewButtons({ view }: { view: ChartView }): JSX.Element {
  return (
    <>
      <Segmented
        label="Smoothing"
        options={[
          { value: "0", label: "Raw" },
          { value: "0.6", label: "Smooth" },
          { value: "0.9", label: "Smoother" },
        ]}
        value={String(view.smoothing)}
        onChange={(value) => view.setSmoothing(Number(value))}
      />
      <Segmented
        label="Scale"
        options={[
          { value: "linear", label: "Linear" },
          { value: "log", label: "Log" },
        ]}
        value={view.log ? "log" : "linear"}
        onChange={(value) => view.setLog(value === "log")}
      />
    </>
  );
}
