/** Shapes of states, drawn: typed ones (two bars, half a disc) look different, or like nothing, in each font. */
import type { JSX } from "react";

export type MarkShape = "ring" | "half" | "disc" | "triangle" | "bars" | "square";

const shapes: Record<MarkShape, JSX.Element> = {
  ring: <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />,
  half: (
    <>
      <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />
      <path d="M6 1.75a4.25 4.25 0 010 8.5z" fill="currentColor" />
    </>
  ),
  disc: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  triangle: <path d="M6 1l5.4 9.6H.6z" fill="currentColor" />,
  bars: <path d="M2.6 1.5h2.4v9H2.6zM7 1.5h2.4v9H7z" fill="currentColor" />,
  square: <rect x="1.5" y="1.5" width="9" height="9" rx="1" fill="currentColor" />,
};

/** In the colour of its text. */
export function Mark({
  shape,
  label,
  size = 12,
  turning = false,
}: {
  shape: MarkShape;
  /** Absent: text beside it says the same. */
  label?: string;
  size?: number;
  /** What is running moves; nothing else does. */
  turning?: boolean;
}): JSX.Element {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 12 12"
      className="inline-block shrink-0"
      role={label === undefined ? undefined : "img"}
      aria-hidden={label === undefined || undefined}
      aria-label={label}
    >
      <g className={turning ? "turning" : undefined}>{shapes[shape]}</g>
    </svg>
  );
}
