import type { JSX } from "react";
import { NoPage } from "../design/no-page.tsx";
import { DeckFrame } from "../features/shell/deck-frame.tsx";

export default function NotFound(): JSX.Element {
  return (
    <DeckFrame>
      <NoPage />
    </DeckFrame>
  );
}
