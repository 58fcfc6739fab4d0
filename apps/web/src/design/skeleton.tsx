import type { JSX } from "react";
import { join } from "./join.ts";

/** Holds the final geometry while data is on its way; does not move. */
export function Skeleton({ className }: { className?: string }): JSX.Element {
  return <div aria-hidden="true" className={join("rounded bg-g2", className)} />;
}
