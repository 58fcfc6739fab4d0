"use client";
/** One turn as text: what was added before it, the model's words, and each call with its result. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, memo, useState } from "react";
import { Chip } from "../../design/chip.tsx";
import { join } from "../../design/join.ts";
import { TextPreview } from "../../design/text-preview.tsx";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

type Added = TurnView["added"][number];
type Call = TurnView["calls"][number];
const originLabels: Record<Added["origin"], string> = {
  template: "Template",
  observation: "Observation",
  hint: "Hint",
  sampled: "Sampled",
};

export function TurnHead({ turn, current }: { turn: TurnView; current: boolean }): JSX.Element {
  return (
    <div className={join("flex h-8 items-center gap-3 border-t border-g3 px-4", current ? "bg-accent-soft" : "bg-g1")}>
      <h3 className="font-semibold">Turn {turn.turn}</h3>
      {turn.stopReason === "length" && <Chip tone="paused">cut by length</Chip>}
      {turn.parseError && <Chip tone="paused">call not readable</Chip>}
      <span className="flex-1" />
      <span className="num flex gap-3 text-xs text-g7">
        <span title="Policy version that sampled this turn">v{turn.policyVersion}</span>
        <span title={`Prompt ${turn.promptTokens} tokens, ${turn.cacheHitTokens} of them from the cache`}>
          {formatCount(turn.promptTokens)} in
        </span>
        <span title="Sampled tokens">{formatCount(turn.sampledTokens)} out</span>
        <span title="Mean log-prob of the sampled tokens, nats">{formatNumber(turn.meanLogprob)}</span>
        <span title="Time to sample">{formatDuration(turn.sampleMs)}</span>
      </span>
    </div>
  );
}

export const TurnBlock = memo(function TurnBlock({
  turn,
  current,
  collapsed,
  onSelect,
}: {
  turn: TurnView;
  current: boolean;
  collapsed: boolean;
  onSelect(turn: number): void;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j and k choose turns by keyboard
    <article aria-label={`Turn ${turn.turn}`} data-turn={turn.turn} onClick={() => onSelect(turn.turn)}>
      <TurnHead turn={turn} current={current} />
      {!collapsed && (
        <div className="flex flex-col gap-2 px-4 pt-2 pb-4">
          {turn.added.map((added, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: what was added never changes once committed
            <AddedBlock key={index} added={added} open={turn.turn === 0} />
          ))}
          <div className="flex gap-3">
            <span className="w-[84px] shrink-0 pt-px text-xs leading-[18px] font-medium text-accent-text">Policy</span>
            <div className="min-w-0 flex-1">
              <TextPreview text={turn.sampled.text} cutCharacters={turn.sampled.cutCharacters} />
            </div>
          </div>
          {turn.parseError && (
            <div className="flex gap-3 text-sm text-paused">
              <span className="w-[84px] shrink-0 text-xs leading-[18px]">Told the model</span>
              <TextPreview text={turn.parseError} />
            </div>
          )}
          {turn.calls.map((call) => (
            <CallBlock key={call.index} call={call} />
          ))}
        </div>
      )}
    </article>
  );
});

function AddedBlock({ added, open }: { added: Added; open: boolean }): JSX.Element {
  const [shown, setShown] = useState(open);
  return (
    <div className="flex gap-3 text-g7">
      <span className="w-[84px] shrink-0 text-xs leading-[18px]">{originLabels[added.origin]}</span>
      <div className="min-w-0 flex-1">
        <button
          type="button"
          aria-expanded={shown}
          onClick={() => setShown(!shown)}
          className="text-xs leading-[18px] text-g7 hover:text-g9"
        >
          {shown ? "▾" : "▸"} {formatCount(added.tokens)} tokens, not sampled
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
            className="border-l-2 border-g4 pl-2 text-g8"
          />
        )}
      </div>
    </div>
  );
}

function CallBlock({ call }: { call: Call }): JSX.Element {
  const failed = call.error !== null;
  return (
    <div className="ml-[96px] overflow-hidden rounded-md border border-g3">
      <div className="flex min-h-7 items-center gap-2 border-b border-g3 bg-g1 px-2">
        <span className="mono min-w-0 truncate text-sm font-medium" title={call.name}>
          {call.name}
        </span>
        {failed && <Chip tone="failed">▲ {call.error?.code}</Chip>}
        {call.state === "started" && <Chip tone="running">running</Chip>}
        <span className="flex-1" />
        <span className="num text-xs text-g7">{formatDuration(call.durationMs)}</span>
      </div>
      <div className="grid grid-cols-[64px_minmax(0,1fr)] gap-y-1 p-2">
        <span className="text-xs leading-[18px] text-g7">Arguments</span>
        <TextPreview text={JSON.stringify(call.arguments, null, Object.keys(call.arguments).length > 1 ? 2 : 0)} />
        <span className="text-xs leading-[18px] text-g7">{failed ? "Error" : "Result"}</span>
        {failed ? (
          <TextPreview text={call.error?.message ?? ""} className="text-failed" />
        ) : call.output ? (
          <TextPreview
            text={call.output.text === "" ? "(empty)" : call.output.text}
            cutCharacters={call.output.cutCharacters}
          />
        ) : (
          <span className="text-sm text-g7">not there yet</span>
        )}
      </div>
    </div>
  );
}
