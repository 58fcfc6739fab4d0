/** A run's status by shape and colour together; only what is running moves. */
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { JSX } from "react";

type Shape = "ring" | "half" | "disc" | "triangle" | "bars" | "square";
interface Look {
  readonly shape: Shape;
  readonly colour: string;
  readonly label: string;
}

export const statusLooks: Record<RunStatus, Look> = {
  queued: { shape: "ring", colour: "var(--status-queued)", label: "Queued" },
  preparing: { shape: "half", colour: "var(--status-running)", label: "Preparing" },
  running: { shape: "half", colour: "var(--status-running)", label: "Running" },
  pausing: { shape: "bars", colour: "var(--status-paused)", label: "Pausing" },
  paused: { shape: "bars", colour: "var(--status-paused)", label: "Paused" },
  stopping: { shape: "square", colour: "var(--status-stopped)", label: "Stopping" },
  stopped: { shape: "square", colour: "var(--status-stopped)", label: "Stopped" },
  completed: { shape: "disc", colour: "var(--status-done)", label: "Completed" },
  failed: { shape: "triangle", colour: "var(--status-failed)", label: "Failed" },
};

const shapes: Record<Shape, JSX.Element> = {
  ring: <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />,
  half: (
    <g className="turning">
      <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />
      <path d="M6 1.75a4.25 4.25 0 010 8.5z" fill="currentColor" />
    </g>
  ),
  disc: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  triangle: <path d="M6 1l5.4 9.6H.6z" fill="currentColor" />,
  bars: <path d="M2.6 1.5h2.4v9H2.6zM7 1.5h2.4v9H7z" fill="currentColor" />,
  square: <rect x="1.5" y="1.5" width="9" height="9" rx="1" fill="currentColor" />,
};

export function StatusMark({ status, withLabel = false }: { status: RunStatus; withLabel?: boolean }): JSX.Element {
  const look = statusLooks[status];
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap" style={{ color: look.colour }}>
      <svg
        width="12"
        height="12"
        viewBox="0 0 12 12"
        className="shrink-0"
        role={withLabel ? undefined : "img"}
        aria-hidden={withLabel || undefined}
        aria-label={withLabel ? undefined : look.label}
      >
        {shapes[look.shape]}
      </svg>
      {withLabel && <span className="font-medium">{look.label}</span>}
    </span>
  );
}
