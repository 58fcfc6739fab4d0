import type { JSX } from "react";

/** A line of at most 60 values with its last point marked; gaps where a value is missing. */
export function Sparkline({
  values,
  colour,
  width = 76,
  height = 20,
}: {
  values: readonly (number | null)[];
  colour: string;
  width?: number;
  height?: number;
}): JSX.Element {
  const present = values.filter((value): value is number => value !== null && Number.isFinite(value));
  const last = values.findLastIndex((value) => value !== null);
  if (present.length === 0) return <svg width={width} height={height} aria-hidden="true" />;
  const low = Math.min(...present);
  const span = Math.max(...present) - low || 1;
  const x = (index: number) => 2 + (index / Math.max(1, values.length - 1)) * (width - 6);
  const y = (value: number) => height - 3 - ((value - low) / span) * (height - 6);
  let path = "";
  let open = false;
  values.forEach((value, index) => {
    if (value === null) {
      open = false;
      return;
    }
    path += `${open ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    open = true;
  });
  const end = values[last];
  return (
    <svg width={width} height={height} aria-hidden="true" className="block shrink-0">
      <path d={path} fill="none" stroke={colour} strokeWidth="1.5" strokeLinejoin="round" />
      {end !== null && end !== undefined && <circle cx={x(last)} cy={y(end)} r="2" fill={colour} />}
    </svg>
  );
}
