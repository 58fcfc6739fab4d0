/** What is unusual about a turn, once for the outline, the turn's head and the rollout's facts. Pure. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { ChipTone } from "../../design/chip.tsx";
import { formatCount } from "../../format/numbers.ts";

export type MarkKind = "cut" | "retry" | "failed" | "reset" | "hint" | "note";
export interface TurnMark {
  readonly kind: MarkKind;
  readonly label: string;
  readonly title: string;
}
/** A shape for each, so that none is told by colour alone. */
export const markGlyphs: Record<MarkKind, string> = {
  failed: "▲",
  retry: "↻",
  cut: "⊣",
  reset: "⟲",
  hint: "◆",
  note: "•",
};
export const markTones: Record<MarkKind, ChipTone> = {
  failed: "failed",
  retry: "paused",
  cut: "paused",
  reset: "accent",
  hint: "neutral",
  note: "neutral",
};

type Marked = Pick<TurnView, "stopReason" | "parseError" | "calls" | "contextChange" | "added" | "notes">;

export function turnMarks(turn: Marked): TurnMark[] {
  const marks: TurnMark[] = [];
  const add = (kind: MarkKind, label: string, title: string) => marks.push({ kind, label, title });
  const failed = turn.calls.filter((call) => call.error !== null).length;
  if (failed > 0)
    add("failed", failed === 1 ? "call failed" : `${failed} calls failed`, "A tool answered with an error");
  if (turn.stopReason === "length")
    add("cut", "cut by length", "The turn reached its token limit before its end token");
  // Of a cut turn the message says just that.
  else if (turn.parseError !== null)
    add("retry", "no usable call", "No call could be read; what the model was told stands below");
  if (turn.contextChange)
    add("reset", changeTitle(turn.contextChange), "A tool of this turn changed what the next prompt begins with");
  if (turn.added.some((part) => part.origin === "hint"))
    add("hint", "hint", "Our words, put into the prompt; not trained");
  if (turn.notes.length > 0)
    add("note", turn.notes.length === 1 ? "1 note" : `${turn.notes.length} notes`, turn.notes.map(noteText).join("\n"));
  return marks;
}

type Change = NonNullable<TurnView["contextChange"]>;
export const changeTitle = (change: Change): string =>
  change.kind === "restart" ? "context restarted" : "context shortened";

/** "1,204 tokens dropped, 96 kept, 210 new" */
export const changeCounts = ({ droppedTokens, keptTokens, newTokens }: Change): string =>
  `${formatCount(droppedTokens)} tokens dropped, ${formatCount(keptTokens)} kept, ${formatCount(newTokens)} new`;

const noteNames: Record<TurnView["notes"][number]["kind"], string> = {
  repair: "Call mended",
  coercion: "Argument read as",
  dialect: "Other call format",
  truncated: "Turn cut",
  usage: "Token counts differ",
  drift: "Prompt drift",
  calls: "Calls left out",
};
export const noteName = (note: TurnView["notes"][number]): string => noteNames[note.kind];
const noteText = (note: TurnView["notes"][number]): string => `${noteName(note)}: ${note.message}`;
