import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { JSX } from "react";
import { MarkedText } from "../../design/marked-text.tsx";

/** The model writes calls in a format that this run does not read: said once, above everything else. */
export function DialectBanner({
  turns,
  onTurn,
}: {
  turns: readonly TurnView[];
  onTurn(turn: number): void;
}): JSX.Element | null {
  const turn = turns.find((each) => each.notes.some((note) => note.kind === "dialect"));
  const note = turn?.notes.find((each) => each.kind === "dialect");
  if (!turn || !note) return null;
  return (
    <div role="alert" className="mx-4 my-2 flex flex-wrap items-center gap-x-3 rounded-md bg-paused-soft px-3 py-2">
      <span className="font-medium text-paused">
        <MarkedText shape="bars">Other call format</MarkedText>
      </span>
      <span className="min-w-0 flex-1 basis-[240px] [overflow-wrap:anywhere]">{note.message}</span>
      <button type="button" className="text-sm text-accent-text hover:underline" onClick={() => onTurn(turn.turn)}>
        Turn {turn.turn}
      </button>
    </div>
  );
}
