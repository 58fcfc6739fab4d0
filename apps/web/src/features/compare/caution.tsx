import type { JSX } from "react";
import { MarkedText } from "../../design/marked-text.tsx";

/** Why numbers of runs can't be held against each other; stands in a list. */
export function Caution({ children }: { children: string }): JSX.Element {
  return (
    <li className="rounded-md bg-paused-soft px-3 py-1.5 text-paused">
      <MarkedText shape="bars">{children}</MarkedText>
    </li>
  );
}
