import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import type { JSX } from "react";
import { Chip } from "../../design/chip.tsx";
import { join } from "../../design/join.ts";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { callOfThread, depthOf } from "./thread-tree.ts";
import { markGlyphs, markTones, turnMarks } from "./turn-marks.ts";

/** A turn in one line: which agent's, what was unusual, what it cost. */
export function TurnHead({
  turn,
  current,
  onGo,
}: {
  turn: TurnView;
  current: boolean;
  onGo(turn: number): void;
}): JSX.Element {
  const maker = callOfThread(turn.thread);
  return (
    <div
      className={join(
        "flex min-h-8 flex-wrap items-center gap-x-3 border-t border-g3 pr-4",
        current ? "bg-accent-soft" : "bg-g1",
      )}
      style={{ paddingLeft: indent(turn) }}
    >
      <h3 className="font-semibold">Turn {turn.turn}</h3>
      {maker && (
        <button
          type="button"
          title={`A sub-agent, made by call ${maker.index + 1} of turn ${maker.turn}`}
          onClick={(event) => {
            event.stopPropagation();
            onGo(maker.turn);
          }}
        >
          <Chip tone="accent">sub-agent of turn {maker.turn}</Chip>
        </button>
      )}
      {turnMarks(turn).map((mark) => (
        <Chip key={mark.kind} tone={markTones[mark.kind]} title={mark.title}>
          <span aria-hidden="true">{markGlyphs[mark.kind]}</span>
          {mark.label}
        </Chip>
      ))}
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

const pagePadding = 16;
const stepWidth = 20;
const deepestShown = 4;
/** Left edge of a turn in pixels: a sub-agent's stands in from its maker's. */
export const indent = (turn: Pick<TurnView, "thread">): number =>
  pagePadding + stepWidth * Math.min(deepestShown, depthOf(turn.thread));
