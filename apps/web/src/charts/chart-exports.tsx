"use client";
import type { JSX } from "react";
import { IconButton } from "../design/button.tsx";
import { Icon } from "../design/icon.tsx";
import { toCsv } from "../format/csv.ts";
import { download, downloadText } from "../format/download.ts";
import type { ChartSeries } from "./chart-series.ts";
import { chartPng } from "./export-png.ts";

/** The numbers as CSV, the picture as PNG. */
export function ChartExports({
  title,
  series,
  xTitle,
  fileName,
  layer,
}: {
  title: string;
  series: readonly ChartSeries[];
  xTitle: string;
  fileName: string;
  layer(): HTMLDivElement | null;
}): JSX.Element {
  const csv = () => {
    const rows = series.flatMap((each) =>
      each.points.map((point) => [
        each.label,
        point.x,
        point.nonFinite ?? point.value,
        point.min,
        point.max,
        point.count,
      ]),
    );
    downloadText(`${fileName}.csv`, "text/csv", toCsv([["series", xTitle, "value", "min", "max", "points"], ...rows]));
  };
  const png = () => {
    const layers = [...(layer()?.querySelectorAll<SVGSVGElement>(":scope > svg, .recharts-surface") ?? [])];
    const own = layers.filter((each) => each.classList.contains("recharts-surface"));
    const over = layers.filter((each) => !each.classList.contains("recharts-surface"));
    if (own.length > 0) void chartPng(title, [...own, ...over]).then((blob) => download(`${fileName}.png`, blob));
  };
  return (
    <>
      <IconButton label={`Download ${title} as CSV`} onClick={csv}>
        <Icon name="download" size={14} />
      </IconButton>
      <IconButton label={`Download ${title} as PNG`} onClick={png}>
        <span className="text-[9px] font-semibold">PNG</span>
      </IconButton>
    </>
  );
}
