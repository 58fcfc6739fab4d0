"use client";
import type { JSX } from "react";
import { IconButton } from "../../design/button.tsx";
import { Icon } from "../../design/icon.tsx";

/** Which step is looked at; null = the newest, whatever that becomes. */
export function StepPicker({
  steps,
  step,
  noun,
  follows,
  onChange,
}: {
  /** Newest first. */
  steps: readonly number[];
  step: number | null;
  noun: string;
  follows: boolean;
  onChange(step: number | null): void;
}): JSX.Element | null {
  if (step === null || steps.length === 0) return null;
  const at = steps.indexOf(step);
  const go = (to: number | undefined) => to !== undefined && onChange(to === steps[0] ? null : to);
  return (
    <span className="flex items-center gap-1">
      <IconButton label="Older step" disabled={steps[at + 1] === undefined} onClick={() => go(steps[at + 1])}>
        <Icon name="left" />
      </IconButton>
      <select
        aria-label="Step"
        value={step}
        onChange={(event) => go(Number(event.target.value))}
        className="num h-7 rounded-md border border-g4 bg-g0 px-1 text-sm"
      >
        {at < 0 && (
          <option value={step}>
            no {noun} {step}
          </option>
        )}
        {steps.map((each) => (
          <option key={each} value={each}>
            {noun} {each}
          </option>
        ))}
      </select>
      <IconButton label="Newer step" disabled={at <= 0} onClick={() => go(steps[at - 1])}>
        <Icon name="right" />
      </IconButton>
      {follows && <span className="text-sm text-g7">newest, follows the run</span>}
    </span>
  );
}
