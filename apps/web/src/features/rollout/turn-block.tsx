"use client";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
/** One turn as text: what was added before it, the model's words, each call with its result, and what became of the context. */
import { threadOfCall } from "@rolldeck/contracts/segments";
import { type JSX, memo, useState } from "react";
import { TextPreview } from "../../design/text-preview.tsx";
import { AddedBlock } from "./added-block.tsx";
import { CallBlock } from "./call-block.tsx";
import { ContextChange } from "./context-change.tsx";
import { LabelledRow } from "./labelled-row.tsx";
import type { SubAgent } from "./thread-tree.ts";
import { indent, TurnHead } from "./turn-head.tsx";
import { noteName } from "./turn-marks.ts";

export const TurnBlock = memo(function TurnBlock({
  turn,
  current,
  collapsed,
  agents,
  artifactHref,
  onSelect,
  onGo,
}: {
  turn: TurnView;
  current: boolean;
  collapsed: boolean;
  agents: ReadonlyMap<string, SubAgent>;
  artifactHref(turn: number, index: number, name: string): string;
  onSelect(turn: number): void;
  onGo(turn: number): void;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j and k choose turns by keyboard
    <article
      aria-label={`Turn ${turn.turn}`}
      data-turn={turn.turn}
      data-thread={turn.thread}
      onClick={() => onSelect(turn.turn)}
    >
      <TurnHead turn={turn} current={current} onGo={onGo} />
      {!collapsed && (
        <div className="flex flex-col gap-2 pt-2 pr-4 pb-4" style={{ paddingLeft: indent(turn) }}>
          {turn.added.map((added, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: what was added never changes once committed
            <AddedBlock key={index} added={added} open={turn.turn === 0} />
          ))}
          <Words turn={turn} />
          {turn.parseError && (
            <LabelledRow label="↻ Told the model" className="text-paused">
              <TextPreview text={turn.parseError} className="text-paused" />
            </LabelledRow>
          )}
          {turn.notes.map((note, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: notes never change once committed
            <LabelledRow key={index} label="• Note" className="text-g7">
              <p className="text-sm leading-[18px] text-g8 [overflow-wrap:anywhere]">
                <span className="font-medium">{noteName(note)}:</span> {note.message}
              </p>
            </LabelledRow>
          ))}
          {turn.calls.map((call) => (
            <CallBlock
              key={call.index}
              call={call}
              turn={turn.turn}
              agent={agents.get(threadOfCall(turn, call.index))}
              artifactHref={(name) => artifactHref(turn.turn, call.index, name)}
              onGo={onGo}
            />
          ))}
          {turn.contextChange && <ContextChange change={turn.contextChange} />}
        </div>
      )}
    </article>
  );
});

/** The sampled text; thinking stands apart from the rest, and the text as it came is one click away. */
function Words({ turn }: { turn: TurnView }): JSX.Element {
  const [raw, setRaw] = useState(false);
  const apart = turn.reasoning && !raw;
  return (
    <>
      {apart && turn.reasoning && (
        <LabelledRow label="Thinking" className="text-g7">
          <TextPreview
            text={turn.reasoning.text}
            cutCharacters={turn.reasoning.cutCharacters}
            className="border-l-2 border-accent-soft pl-2 text-g8"
          />
        </LabelledRow>
      )}
      <LabelledRow label="Policy" className="font-medium text-accent-text">
        {apart && turn.content ? (
          <TextPreview
            text={turn.content.text === "" ? "(nothing beside thinking and calls)" : turn.content.text}
            cutCharacters={turn.content.cutCharacters}
            className={turn.content.text === "" ? "text-g7" : undefined}
          />
        ) : (
          <TextPreview text={turn.sampled.text} cutCharacters={turn.sampled.cutCharacters} />
        )}
        {turn.reasoning && (
          <button
            type="button"
            aria-pressed={raw}
            onClick={() => setRaw(!raw)}
            className="text-xs text-accent-text hover:underline"
          >
            {raw ? "Thinking apart" : "As sampled"}
          </button>
        )}
      </LabelledRow>
    </>
  );
}
