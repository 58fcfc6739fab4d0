/** The few icons there are, drawn on a 16 px grid with 1.5 px lines; always beside a label or with an aria-label on the button. */
import type { JSX } from "react";

const paths = {
  runs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  compare: "M2 12.5l3.5-5 3 3 5-7M2 5.5l3 2",
  settings: "M2.5 4.5h6M12 4.5h1.5M2.5 11.5H4M7.5 11.5h6M10.2 2.7v3.6M5.8 9.7v3.6",
  collapse: "M10 4L6 8l4 4",
  expand: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 5.5v-3h3M10.5 2.5h3v3M13.5 10.5v3h-3M5.5 13.5h-3v-3",
  schedule: "M2.5 4h6M5.5 8h7M8.5 12h5",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 12A5 5 0 107 2a5 5 0 000 10zM10.7 10.7L14 14",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  check: "M3 8.5l3.2 3.2L13 5",
  info: "M8 14A6 6 0 108 2a6 6 0 000 12zM8 7.4v3.4M8 5.2v.1",
  table: "M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 6.5v6",
  chart: "M2.5 2.5v11h11M5 10l2.5-3 2 1.6L13 5",
  download: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  sun: "M8 11A3 3 0 108 5a3 3 0 000 6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.6A5.5 5.5 0 016.4 3a5.5 5.5 0 106.6 6.6z",
  system: "M2.5 3.5h11v7h-11zM6 13h4",
  left: "M9.5 4L5.5 8l4 4",
  right: "M6.5 4l4 4-4 4",
  link: "M6.8 9.2a2.4 2.4 0 003.4 0l2-2a2.4 2.4 0 00-3.4-3.4l-.8.8M9.2 6.8a2.4 2.4 0 00-3.4 0l-2 2a2.4 2.4 0 003.4 3.4l.8-.8",
} as const;
export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={paths[name]} />
    </svg>
  );
}
