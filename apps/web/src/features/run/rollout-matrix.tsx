// biome-ignore-all lint/a11y/useSemanticElements: groups flow into several columns, which table elements can't
"use client";
/**
 * Groups × samples of one step. Colour: reward around the group's mean; shape: stage or ending; both with text. One tab
 * stop; arrows move, Enter opens.
 */
import type { Matrix } from "@rolldeck/contracts/api/runs";
import { useRouter } from "next/navigation";
import { type JSX, type KeyboardEvent, memo, useMemo, useRef } from "react";
import { join } from "../../design/join.ts";
import { deviation, rewardColour } from "../../design/reward-colour.ts";
import { formatNumber, formatShort, shortenId } from "../../format/numbers.ts";
import { passedOf, passedWords } from "../rollout/passed-of.ts";
import { type Cell, CellGlyph, cellKind, kindLabels } from "./cell-glyph.tsx";

const cellWidth = 56;
const samplesPerLine = 16;
type Group = Matrix["groups"][number];

export function RolloutMatrix({
  matrix,
  selected,
  onSelect,
}: {
  matrix: Matrix;
  selected: string | null;
  onSelect(rolloutId: string): void;
}): JSX.Element {
  const router = useRouter();
  const grid = useRef<HTMLDivElement>(null);
  const largest = useMemo(
    () =>
      matrix.groups.reduce(
        (most, group) =>
          group.cells.reduce(
            (inner, cell) =>
              cell.reward === null || group.mean === null ? inner : Math.max(inner, Math.abs(cell.reward - group.mean)),
            most,
          ),
        0,
      ),
    [matrix.groups],
  );
  const samples = matrix.groups.reduce((most, group) => Math.max(most, group.cells.length), 0);
  const flat = samples <= 1;
  const perLine = Math.min(samples, samplesPerLine);
  const first = matrix.groups[0]?.cells[0]?.rolloutId ?? null;

  const move = (event: KeyboardEvent<HTMLDivElement>) => {
    const cells = [...(grid.current?.querySelectorAll<HTMLElement>("[data-rollout]") ?? [])];
    const at = document.activeElement instanceof HTMLElement ? cells.indexOf(document.activeElement) : -1;
    const here = cells[at];
    if (!here) return;
    const next =
      event.key === "ArrowUp" || event.key === "ArrowDown"
        ? nearestRow(cells, here, event.key)
        : cells[at + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)];
    if (event.key === "Enter") router.push(`/runs/${matrix.runId}/t/${here.dataset.rollout}`);
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    next?.focus();
  };
  return (
    <div
      ref={grid}
      role="grid"
      tabIndex={-1}
      aria-label="Rollouts by group and sample"
      onKeyDown={move}
      className="grid content-start gap-x-8 gap-y-1"
      style={{
        gridTemplateColumns: flat
          ? `repeat(auto-fill, minmax(${cellWidth + 4}px, 1fr))`
          : `repeat(auto-fill, minmax(${176 + perLine * (cellWidth + 2)}px, 1fr))`,
      }}
    >
      {matrix.groups.map((group) => (
        <GroupRow
          key={group.groupId}
          group={group}
          largest={largest}
          selected={group.cells.some((cell) => cell.rolloutId === selected) ? selected : null}
          tabStop={selected ?? first}
          onSelect={onSelect}
          runId={matrix.runId}
          flat={flat}
          counts={matrix.purpose === "evaluate"}
        />
      ))}
    </div>
  );
}

/** The cell above or below by position on screen: groups may stand in several columns. */
function nearestRow(cells: readonly HTMLElement[], here: HTMLElement, key: string): HTMLElement | undefined {
  const from = here.getBoundingClientRect();
  const sign = key === "ArrowDown" ? 1 : -1;
  let best: { cell: HTMLElement; distance: number } | undefined;
  for (const cell of cells) {
    const box = cell.getBoundingClientRect();
    const down = (box.top - from.top) * sign;
    if (down < 4) continue;
    const distance = down * 4 + Math.abs(box.left - from.left);
    if (!best || distance < best.distance) best = { cell, distance };
  }
  return best?.cell;
}

const GroupRow = memo(function GroupRow({
  group,
  largest,
  selected,
  tabStop,
  onSelect,
  runId,
  flat,
  counts,
}: {
  group: Group;
  largest: number;
  selected: string | null;
  tabStop: string | null;
  onSelect(rolloutId: string): void;
  runId: string;
  flat: boolean;
  /** How many of its samples passed is said. */
  counts: boolean;
}): JSX.Element {
  const passed = counts ? passedOf(group.cells) : null;
  const rewards = group.cells.flatMap((cell) => (cell.reward === null ? [] : [cell.reward]));
  const settled = group.cells.every((cell) => cell.state === "settled");
  const flatRewards = settled && rewards.length > 1 && Math.max(...rewards) - Math.min(...rewards) <= 1e-6;
  const cells = group.cells.map((cell) => (
    <RolloutCell
      key={cell.rolloutId}
      cell={cell}
      mean={group.mean}
      largest={flat ? 1 : largest}
      selected={cell.rolloutId === selected}
      tabStop={cell.rolloutId === tabStop}
      onSelect={onSelect}
      runId={runId}
      label={`${group.instanceId}, sample ${cell.sample}`}
    />
  ));
  if (flat)
    return (
      <div role="row" tabIndex={-1} title={group.instanceId}>
        {cells}
      </div>
    );
  return (
    <div role="row" tabIndex={-1} className="flex min-h-7 items-start gap-2">
      <span
        role="rowheader"
        tabIndex={-1}
        className="flex h-[26px] w-40 shrink-0 items-center justify-between gap-2 text-sm"
      >
        <span className="mono truncate text-g8" title={`${group.taskSet} ${group.instanceId}`}>
          {shortenId(group.instanceId, 7)}
        </span>
        {passed && (
          <span className="num ml-auto shrink-0 text-g7" title={passedWords(passed)}>
            {passed.passed}/{passed.graded}
          </span>
        )}
        <span
          className="num shrink-0 text-g7"
          title={flatRewards ? "Mean of the group; all rewards are equal, so it teaches nothing" : "Mean of the group"}
        >
          {flatRewards ? "= " : ""}
          {formatNumber(group.mean)}
        </span>
      </span>
      <span className="flex flex-wrap gap-0.5">{cells}</span>
    </div>
  );
});

function RolloutCell({
  cell,
  mean,
  largest,
  selected,
  tabStop,
  onSelect,
  runId,
  label,
}: {
  cell: Cell;
  mean: number | null;
  largest: number;
  selected: boolean;
  tabStop: boolean;
  onSelect(rolloutId: string): void;
  runId: string;
  label: string;
}): JSX.Element {
  const router = useRouter();
  const kind = cellKind(cell);
  const scored = cell.reward !== null;
  const text =
    cell.reward !== null
      ? formatShort(cell.reward)
      : cell.state === "active" && cell.stage === "run"
        ? `t${cell.turns}`
        : "";
  return (
    <button
      type="button"
      role="gridcell"
      data-rollout={cell.rolloutId}
      data-kind={kind}
      tabIndex={tabStop ? 0 : -1}
      aria-selected={selected}
      aria-label={`${label}: ${kindLabels[kind]}${scored ? `, reward ${formatNumber(cell.reward)}` : ""}, ${cell.turns} turns`}
      onMouseEnter={() => onSelect(cell.rolloutId)}
      onFocus={() => onSelect(cell.rolloutId)}
      onClick={() => router.push(`/runs/${runId}/t/${cell.rolloutId}`)}
      className={join(
        "num flex h-[26px] items-center justify-between gap-1 rounded-[3px] px-1.5 text-xs transition-colors duration-100",
        kind === "failed" ? "bg-failed-soft text-failed shadow-[inset_0_0_0_1.5px_var(--status-failed)]" : "text-g9",
        !scored && kind !== "failed" && "shadow-[inset_0_0_0_1px_var(--g4)]",
        (kind === "waiting" || kind === "queued" || kind === "cancelled") && "text-g7",
        (kind === "run" || kind === "init" || kind === "evaluate") && "text-running",
        selected && "outline-2 outline-accent",
      )}
      style={{
        width: cellWidth,
        ...(scored && kind !== "failed" ? { background: rewardColour(deviation(cell.reward, mean, largest)) } : {}),
      }}
    >
      <CellGlyph kind={kind} />
      <span>{text}</span>
    </button>
  );
}
