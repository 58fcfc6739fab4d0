"use client";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useState } from "react";
import { join } from "../../design/join.ts";
import { TextPreview } from "../../design/text-preview.tsx";
import { formatCount } from "../../format/numbers.ts";
import { LabelledRow } from "./labelled-row.tsx";

type Added = TurnView["added"][number];
const looks: Record<Added["origin"], { readonly label: string; readonly what: string; readonly edge: string }> = {
  template: { label: "Template", what: "not sampled", edge: "border-g4" },
  observation: { label: "Observation", what: "not sampled", edge: "border-g4" },
  hint: { label: "◆ Hint", what: "our words, never trained", edge: "border-[var(--origin-hint)]" },
  // Another agent of this rollout wrote it; here it is context.
  sampled: { label: "Sampled", what: "by another agent of this rollout", edge: "border-[var(--origin-sampled)]" },
};

/** What the prompt gained before the model's words. Hints stand open: few words that people look for. */
export function AddedBlock({ added, open }: { added: Added; open: boolean }): JSX.Element {
  const [shown, setShown] = useState(open || added.origin === "hint");
  const look = looks[added.origin];
  return (
    <LabelledRow label={look.label} className={added.origin === "hint" ? "text-[var(--origin-hint)]" : "text-g7"}>
      <button
        type="button"
        aria-expanded={shown}
        onClick={() => setShown(!shown)}
        className="text-left text-xs leading-[18px] text-g7 hover:text-g9"
      >
        {shown ? "▾" : "▸"} {formatCount(added.tokens)} tokens, {look.what}
        {!shown && (
          <span className="mono ml-2 inline-block max-w-[380px] truncate align-bottom opacity-80">
            {added.preview.text.slice(0, 120).replaceAll("\n", " ")}
          </span>
        )}
      </button>
      {shown && (
        <TextPreview
          text={added.preview.text}
          cutCharacters={added.preview.cutCharacters}
          className={join("border-l-2 pl-2 text-g8", look.edge)}
        />
      )}
    </LabelledRow>
  );
}
