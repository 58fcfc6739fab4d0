import type { JSX, ReactNode } from "react";
import { Mark, type MarkShape } from "./mark.tsx";

/** A sentence that begins with a mark: a warning, a fault. */
export function MarkedText({ shape, children }: { shape: MarkShape; children: ReactNode }): JSX.Element {
  return (
    <span className="inline-flex min-w-0 items-baseline gap-1.5">
      <span className="relative top-px shrink-0">
        <Mark shape={shape} size={9} />
      </span>
      <span className="min-w-0">{children}</span>
    </span>
  );
}
