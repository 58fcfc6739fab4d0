"use client";
import type { RolloutDetail } from "@rolldeck/contracts/api/rollouts";
import { endingRule } from "@rolldeck/contracts/endings";
import Link from "next/link";
import type { JSX } from "react";
import { Chip, type ChipTone } from "../../design/chip.tsx";
import { join } from "../../design/join.ts";
import { deviation, rewardColour } from "../../design/reward-colour.ts";
import { visibleText } from "../../design/visible-text.ts";
import { formatCount, formatNumber } from "../../format/numbers.ts";
import { CellGlyph, cellKind } from "../run/cell-glyph.tsx";
import { PartButtons } from "../schedule/part-buttons.tsx";
import { passedOf, passedWords } from "./passed-of.ts";

const fateTones: Record<RolloutDetail["fate"]["state"], ChipTone> = {
  trained: "done",
  masked: "paused",
  pending: "neutral",
  "not-trained": "neutral",
};
const fateLabels: Record<RolloutDetail["fate"]["state"], string> = {
  trained: "trained",
  masked: "masked",
  pending: "not trained yet",
  "not-trained": "not trained",
};

export function RolloutHeader({
  rollout,
  attempt: shown,
  onAttempt,
}: {
  rollout: RolloutDetail;
  /** Which is looked at. */
  attempt: number;
  onAttempt(attempt: number): void;
}): JSX.Element {
  const ending = rollout.ending ? endingRule(rollout.ending) : null;
  const versions = rollout.policyVersions;
  const parts = Object.entries(rollout.rewardParts);
  const sum = parts.flatMap(([name, part]) => (typeof part === "number" ? [`${name} ${formatNumber(part)}`] : []));
  const words = parts.flatMap(([name, part]) => (typeof part === "string" ? [`${name}: ${part}`] : []));
  return (
    <header className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-g3 px-4 py-2.5">
      <h1 className="flex min-w-0 items-center gap-2 text-lg font-semibold">
        <CellGlyph kind={cellKind(rollout)} />
        <span className="mono truncate" title={`${rollout.taskSet} ${rollout.instanceId}`}>
          {rollout.instanceId}
        </span>
        <span className="font-normal whitespace-nowrap text-g7">
          sample {rollout.sample + 1} of {rollout.siblings.length}
        </span>
      </h1>
      <span className="inline-flex items-baseline gap-1.5" title="Reward of the rollout">
        <span className="text-sm text-g7">reward</span>
        <span className="num text-lg font-semibold">{formatNumber(rollout.reward)}</span>
        {sum.length > 0 && <span className="num text-sm text-g7">= {sum.join(" + ")}</span>}
        {words.length > 0 && <span className="text-sm text-g7">{words.join(" · ")}</span>}
      </span>
      {ending ? (
        <Chip tone={ending.kind === "failed" ? "failed" : ending.kind === "cut" ? "paused" : "neutral"}>
          {ending.kind === "failed" && "▲ "}
          {ending.label}
        </Chip>
      ) : (
        <Chip tone="running">
          {rollout.state} in {rollout.stage}
        </Chip>
      )}
      <Chip tone={fateTones[rollout.fate.state]} title={rollout.fate.reason ?? undefined}>
        {fateLabels[rollout.fate.state]}
        {rollout.fate.advantage !== null && ` · advantage ${formatNumber(rollout.fate.advantage)}`}
        {rollout.fate.reason && ` · ${rollout.fate.reason}`}
      </Chip>
      {rollout.flags.map((flag) => (
        <Chip key={flag} tone="paused" title="The verifier wants people to look at this; it is no part of the reward">
          ⚑ {visibleText(flag)}
        </Chip>
      ))}
      {versions.length > 0 && (
        <span className="num text-sm text-g7" title="Policy versions that sampled its turns">
          v{versions[0]}
          {versions.length > 1 && `–${versions.at(-1)}`}
        </span>
      )}
      {rollout.attempts.length > 1 && (
        <label className="inline-flex items-center gap-1.5 text-sm text-g7">
          attempt
          <select
            value={shown}
            onChange={(event) => onAttempt(Number(event.target.value))}
            className="num h-6 rounded border border-g4 bg-g0 text-sm text-g9"
          >
            {rollout.attempts.map((attempt) => (
              <option key={attempt.attempt} value={attempt.attempt}>
                {attempt.attempt} of {rollout.attempts.length}
                {attempt.reason ? ` (${attempt.reason.slice(0, 40)})` : ""}
              </option>
            ))}
          </select>
        </label>
      )}
      <div className="ml-auto flex flex-wrap items-center gap-x-4 gap-y-2">
        {rollout.outcome === null && <PartButtons part="rollout" id={rollout.rolloutId} small />}
        <Siblings rollout={rollout} />
      </div>
      {rollout.reason && rollout.outcome !== "completed" && (
        <p className="w-full text-sm text-failed [overflow-wrap:anywhere]">{rollout.reason}</p>
      )}
    </header>
  );
}

function Siblings({ rollout }: { rollout: RolloutDetail }): JSX.Element {
  const rewards = rollout.siblings.flatMap((each) => (each.reward === null ? [] : [each.reward]));
  const mean = rewards.length > 0 ? rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length : null;
  const largest = mean === null ? 0 : rewards.reduce((most, reward) => Math.max(most, Math.abs(reward - mean)), 0);
  const passed = passedOf(rollout.siblings);
  return (
    <nav aria-label="Rollouts of the same group" className="flex items-center gap-2">
      <span className="figures text-sm text-g7">
        {passed && (
          <span title={passedWords(passed)}>
            {formatCount(passed.passed)} of {formatCount(passed.graded)} passed ·{" "}
          </span>
        )}
        group mean {formatNumber(mean)}
      </span>
      <span className="flex max-w-[420px] flex-wrap gap-0.5">
        {rollout.siblings.slice(0, 32).map((sibling) => {
          const here = sibling.rolloutId === rollout.rolloutId;
          const failed = sibling.ending !== null && endingRule(sibling.ending).kind === "failed";
          return (
            <Link
              key={sibling.rolloutId}
              href={`/runs/${rollout.runId}/t/${sibling.rolloutId}`}
              aria-current={here ? "page" : undefined}
              aria-label={`Sample ${sibling.sample + 1}, reward ${formatNumber(sibling.reward)}`}
              title={`Sample ${sibling.sample + 1}: ${sibling.ending ? endingRule(sibling.ending).label : "going on"}`}
              className={join(
                "num flex h-6 min-w-8 items-center justify-center rounded-[3px] px-1 text-xs",
                here && "outline-2 outline-accent",
                failed && "bg-failed-soft text-failed",
                sibling.reward === null && !failed && "border border-g4 text-g7",
              )}
              style={
                sibling.reward === null
                  ? undefined
                  : { background: rewardColour(deviation(sibling.reward, mean, largest)) }
              }
            >
              {failed ? "▲" : sibling.reward === null ? "○" : formatNumber(sibling.reward)}
            </Link>
          );
        })}
        {rollout.siblings.length > 32 && (
          <span className="text-xs text-g7">{formatCount(rollout.siblings.length - 32)} more</span>
        )}
      </span>
    </nav>
  );
}
