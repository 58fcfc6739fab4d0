/** A run's status by shape and colour together; only what is running moves. */
import type { RunStatus } from "@rolldeck/contracts/lifecycle";
import type { JSX } from "react";
import { Mark, type MarkShape } from "./mark.tsx";

interface Look {
  readonly shape: MarkShape;
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

export function StatusMark({ status, withLabel = false }: { status: RunStatus; withLabel?: boolean }): JSX.Element {
  const look = statusLooks[status];
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap" style={{ color: look.colour }}>
      <Mark shape={look.shape} turning={look.shape === "half"} {...(withLabel ? {} : { label: look.label })} />
      {withLabel && <span className="font-medium">{look.label}</span>}
    </span>
  );
}
