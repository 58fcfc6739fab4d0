"use client";
/** What the engine that samples bears now, and how many of the run's rollouts may sample from it, with the reason. */
import { type EngineNow as Engine, engineNumbers } from "@rolldeck/contracts/api/schedule";
import type { JSX, ReactNode } from "react";
import { TimeAgo } from "../../design/time-ago.tsx";
import { Tooltip } from "../../design/tooltip.tsx";
import { formatCount, thinSpace } from "../../format/numbers.ts";

export function EngineNow({ engine }: { engine: Engine }): JSX.Element {
  const { load } = engine;
  return (
    <section aria-label="Engine now" className="flex flex-col gap-1">
      <h2 className="font-semibold">Engine now</h2>
      <dl className="flex flex-wrap items-baseline gap-x-6">
        {load?.fresh ? (
          <>
            <Figure of="running" value={formatCount(load.running)} unit={requests(load.running)} />
            <Figure of="waiting" value={formatCount(load.waiting)} unit={requests(load.waiting)} />
            <Figure of="cacheUse" value={`${Math.round(load.cacheUse * 100)}${thinSpace}%`} unit="" />
            <div className="text-sm text-g7">
              read <TimeAgo at={load.readAt} />
            </div>
          </>
        ) : (
          <div className="flex min-h-6 items-center text-g7">{whyNoReading(engine)}</div>
        )}
      </dl>
      <dl className="flex flex-wrap items-baseline gap-x-3">
        <Figure of="limit" value={formatCount(engine.limit)} unit={`of ${formatCount(engine.bound)} rollouts`} />
        <div className="text-g8">{limitWords(engine)}</div>
      </dl>
    </section>
  );
}

const requests = (count: number): string => (count === 1 ? "request" : "requests");

function Figure({ of, value, unit }: { of: keyof typeof engineNumbers; value: string; unit: string }): JSX.Element {
  const { label, definition, unit: fullUnit } = engineNumbers[of];
  return (
    <Tooltip content={`${definition} Unit: ${fullUnit}.`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: its definition is read on focus */}
      <div tabIndex={0} data-number={of} className="flex min-h-6 items-baseline gap-1.5">
        <dt className="text-sm text-g7">{label}</dt>
        <dd className="whitespace-nowrap">
          <span className="num font-medium">{value}</span>
          {unit && <span className="text-g8"> {unit}</span>}
        </dd>
      </div>
    </Tooltip>
  );
}

function whyNoReading({ tells, load }: Engine): ReactNode {
  if (!tells) return "No load reading: this backend does not tell how full its engine is.";
  if (load === null) return "No load reading yet.";
  return (
    <>
      No load reading: the last one is from&nbsp;
      <TimeAgo at={load.readAt} />, too old to go by.
    </>
  );
}

function limitWords({ adaptive, load, limitSince, limitReason }: Engine): ReactNode {
  if (!adaptive) return "set by bounds.run; adaptive is off";
  if (limitSince === null)
    return load?.fresh ? "bounds.run: the engine bears it" : "bounds.run, held until there is a reading";
  return (
    <>
      {limitReason ?? "set by the engine's load"},{" "}
      <span className="text-sm text-g7">
        set <TimeAgo at={limitSince} />
        {load?.fresh ? "" : ", held until there is a reading"}
      </span>
    </>
  );
}
