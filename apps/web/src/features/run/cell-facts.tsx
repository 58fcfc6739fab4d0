"use client";
import type { Matrix } from "@rolldeck/contracts/api/runs";
import { endingRule } from "@rolldeck/contracts/endings";
import type { JSX } from "react";
import { ButtonLink } from "../../design/button.tsx";
import { CopyText } from "../../design/copy-text.tsx";
import { Facts } from "../../design/facts.tsx";
import { visibleText } from "../../design/visible-text.ts";
import { formatCount, formatNumber, shortenId } from "../../format/numbers.ts";
import { PartButtons } from "../schedule/part-buttons.tsx";
import { CellGlyph, cellKind, kindLabels } from "./cell-glyph.tsx";

/** The rollout under the pointer or the focus. */
export function CellFacts({ matrix, selected }: { matrix: Matrix; selected: string | null }): JSX.Element {
  const group = matrix.groups.find((each) => each.cells.some((cell) => cell.rolloutId === selected));
  const cell = group?.cells.find((each) => each.rolloutId === selected);
  if (!group || !cell)
    return (
      <p className="text-sm text-g7">Point at a rollout to see it here. Click it or press Enter to read its turns.</p>
    );
  const kind = cellKind(cell);
  return (
    <div className="flex flex-col gap-3">
      <h2 className="flex items-center gap-2 font-semibold">
        <CellGlyph kind={kind} />
        {cell.ending ? endingRule(cell.ending).label : kindLabels[kind]}
      </h2>
      <Facts
        rows={[
          [
            "Reward",
            <span key="r" className="num">
              {formatNumber(cell.reward)}
            </span>,
          ],
          [
            "Group mean",
            <span key="m" className="num">
              {formatNumber(group.mean)}
            </span>,
          ],
          [
            "Turns",
            <span key="t" className="num">
              {formatCount(cell.turns)}
            </span>,
          ],
          ["Stage", `${cell.stage}, ${cell.state}`],
          [
            "Attempt",
            <span key="a" className="num">
              {cell.attempt}
            </span>,
          ],
          ...(cell.flags.length > 0 ? ([["Flags", visibleText(cell.flags.join("; "))]] as const) : []),
          ["Task", group.taskSet],
          [
            "Instance",
            <span key="i" className="mono">
              {group.instanceId}
            </span>,
          ],
          [
            "Sample",
            <span key="s" className="num">
              {cell.sample}
            </span>,
          ],
          [
            "Rollout",
            <CopyText key="c" text={cell.rolloutId}>
              {shortenId(cell.rolloutId)}
            </CopyText>,
          ],
        ]}
      />
      <div>
        <ButtonLink href={`/runs/${matrix.runId}/t/${cell.rolloutId}`}>Open rollout</ButtonLink>
      </div>
      {matrix.state === "gathering" && group.cells.some(({ state }) => state !== "settled") && (
        <PartButtons part="group" id={group.groupId} small />
      )}
    </div>
  );
}
