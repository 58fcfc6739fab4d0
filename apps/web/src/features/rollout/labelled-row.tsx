import type { JSX, ReactNode } from "react";
import { join } from "../../design/join.ts";

/** A part of a turn: who or what on the left, its text on the right. */
export function LabelledRow({
  label,
  className,
  children,
}: {
  label: string;
  /** Of the label. */
  className?: string;
  children: ReactNode;
}): JSX.Element {
  return (
    <div className="flex gap-3 max-md:flex-col max-md:gap-0">
      <span className={join("w-[96px] shrink-0 pt-px text-xs leading-[18px]", className)}>{label}</span>
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
}
