import type { JSX, ReactNode } from "react";
import { join } from "./join.ts";

export type ChipTone = "neutral" | "accent" | "failed" | "paused" | "done" | "running";
const tones: Record<ChipTone, string> = {
  neutral: "border-g4 text-g8",
  accent: "border-transparent bg-accent-soft text-accent-text",
  failed: "border-transparent bg-failed-soft text-failed",
  paused: "border-transparent bg-paused-soft text-paused",
  done: "border-transparent bg-done-soft text-done",
  running: "border-transparent bg-running-soft text-running",
};

export function Chip({
  tone = "neutral",
  title,
  className,
  children,
}: {
  tone?: ChipTone;
  title?: string;
  className?: string;
  children: ReactNode;
}): JSX.Element {
  return (
    <span
      title={title}
      className={join(
        "inline-flex h-5 max-w-full items-center gap-1 truncate rounded border px-1.5 text-xs whitespace-nowrap",
        tones[tone],
        className,
      )}
    >
      {children}
    </span>
  );
}
