import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { JSX } from "react";
import { changeCounts, changeTitle } from "./turn-marks.ts";

/** Where a turn's tools changed what the agent's next prompt begins with. */
export function ContextChange({ change }: { change: NonNullable<TurnView["contextChange"]> }): JSX.Element {
  const title = changeTitle(change);
  return (
    <p
      data-testid="context-change"
      className="flex flex-wrap items-center gap-x-2 rounded-md bg-accent-soft px-3 py-1.5 text-accent-text"
      title="What the next prompt of this agent begins with, against this turn's prompt and sample"
    >
      <span aria-hidden="true">⟲</span>
      <span className="font-medium">
        {title.charAt(0).toUpperCase()}
        {title.slice(1)}
      </span>
      <span className="text-sm">{changeCounts(change)}</span>
    </p>
  );
}
