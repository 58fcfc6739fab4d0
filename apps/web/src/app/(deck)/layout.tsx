import type { JSX, ReactNode } from "react";
import { DeckFrame } from "../../features/shell/deck-frame.tsx";

export default function DeckLayout({ children }: { children: ReactNode }): JSX.Element {
  return <DeckFrame>{children}</DeckFrame>;
}
