"use client";
/** Rollouts of one group side by side, turn by turn; where they part is marked. The first column is the one that is read. */
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";
import { endingRule } from "@rolldeck/contracts/endings";
import { useQueries } from "@tanstack/react-query";
import Link from "next/link";
import { Fragment, type JSX } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { join } from "../../design/join.ts";
import { MarkedText } from "../../design/marked-text.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { TextPreview } from "../../design/text-preview.tsx";
import { formatNumber } from "../../format/numbers.ts";
import { firstDivergence, mostColumns, usualSiblings } from "./sibling-choice.ts";
import { inReadingOrder } from "./thread-tree.ts";
import { markGlyphs, turnMarks } from "./turn-marks.ts";

const shownTurns = 100;
type Sibling = RolloutDetail["siblings"][number];

export function SiblingColumns({
  rollout,
  chosen,
  onChosen,
}: {
  rollout: RolloutDetail;
  /** Ids beside the rollout's own; null: the usual ones. */
  chosen: readonly string[] | null;
  onChosen(rolloutIds: readonly string[]): void;
}): JSX.Element {
  const trpc = useTRPC();
  const others = (chosen ?? usualSiblings(rollout.siblings, rollout.rolloutId)).slice(0, mostColumns - 1);
  const columns = [rollout.rolloutId, ...others].flatMap(
    (id) => rollout.siblings.find((each) => each.rolloutId === id) ?? [],
  );
  const pages = useQueries({
    queries: columns.map(({ rolloutId, ending }) =>
      trpc.rollouts.turns.queryOptions(
        {
          rolloutId,
          limit: shownTurns,
          ...(rolloutId === rollout.rolloutId ? { attempt: rollout.attempt } : {}),
        },
        { refetchInterval: ending === null ? 3_000 : false },
      ),
    ),
  });
  const turns = pages.map((page) => inReadingOrder(page.data?.turns ?? []));
  const complete = pages.map((page, index) => page.data?.more === false && columns[index]?.ending != null);
  const failed = pages.find((page) => page.error);
  const loading = pages.some((page) => page.isPending);
  const rows = Math.max(0, ...turns.map((each) => each.length));
  const parts = loading
    ? null
    : firstDivergence(turns.map((each, index) => ({ turns: each, complete: complete[index] ?? false })));
  return (
    <section aria-label="Siblings side by side" className="min-h-0 flex-1 overflow-auto">
      <Choice rollout={rollout} shown={others} onChosen={onChosen} />
      {failed && (
        <div className="px-4 pb-2">
          <ErrorBanner error={failed.error} doing="load a sibling's turns" onRetry={() => void failed.refetch()} />
        </div>
      )}
      {loading ? (
        <Skeleton className="mx-4 h-96" />
      ) : (
        <div
          className="grid min-w-[640px] border-t border-g3"
          style={{ gridTemplateColumns: `repeat(${columns.length}, minmax(0, 1fr))` }}
        >
          {columns.map((column) => (
            <ColumnHead key={column.rolloutId} sibling={column} rollout={rollout} />
          ))}
          {Array.from({ length: rows }, (_, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is the place of a turn
            <Fragment key={at}>
              {parts === at && (
                <p
                  className="col-span-full bg-paused-soft px-4 py-1 text-sm font-medium text-paused"
                  data-testid="divergence"
                >
                  <MarkedText shape="bars">Here they part</MarkedText>
                </p>
              )}
              {turns.map((each, index) => (
                <Cell
                  key={columns[index]?.rolloutId}
                  turn={each[at]}
                  instead={at !== each.length ? "" : complete[index] ? "ended" : "no more turns shown"}
                />
              ))}
            </Fragment>
          ))}
        </div>
      )}
      {!loading && parts === null && rows > 0 && (
        <p className="px-4 py-2 text-g7">They say the same in every turn shown.</p>
      )}
    </section>
  );
}

function Choice({
  rollout,
  shown,
  onChosen,
}: {
  rollout: RolloutDetail;
  shown: readonly string[];
  onChosen(rolloutIds: readonly string[]): void;
}): JSX.Element {
  return (
    <fieldset className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm">
      <legend className="sr-only">Beside this rollout</legend>
      <span className="text-g7">Beside sample {rollout.sample + 1}:</span>
      {rollout.siblings
        .filter((each) => each.rolloutId !== rollout.rolloutId)
        .slice(0, 31)
        .map((each) => {
          const on = shown.includes(each.rolloutId);
          return (
            <label key={each.rolloutId} className="inline-flex items-center gap-1">
              <input
                type="checkbox"
                checked={on}
                disabled={on ? shown.length === 1 : shown.length >= mostColumns - 1}
                onChange={() => onChosen(on ? shown.filter((id) => id !== each.rolloutId) : [...shown, each.rolloutId])}
                className="size-3.5 accent-accent"
              />
              <span className="num">
                {each.sample + 1} <span className="text-g7">({formatNumber(each.reward)})</span>
              </span>
            </label>
          );
        })}
    </fieldset>
  );
}

function ColumnHead({ sibling, rollout }: { sibling: Sibling; rollout: RolloutDetail }): JSX.Element {
  const here = sibling.rolloutId === rollout.rolloutId;
  return (
    <div
      className={join(
        "sticky top-0 flex items-baseline gap-2 border-b border-g3 px-4 py-1.5",
        here ? "bg-accent-soft" : "bg-g1",
      )}
    >
      {here ? (
        <span className="font-semibold">Sample {sibling.sample + 1}</span>
      ) : (
        <Link
          href={`/runs/${rollout.runId}/t/${sibling.rolloutId}`}
          className="font-semibold text-accent-text hover:underline"
        >
          Sample {sibling.sample + 1}
        </Link>
      )}
      <span className="num">{formatNumber(sibling.reward)}</span>
      <span className="truncate text-sm text-g7">{sibling.ending ? endingRule(sibling.ending).label : "going on"}</span>
    </div>
  );
}

/** @param instead what is said where there is no turn */
function Cell({ turn, instead }: { turn: TurnView | undefined; instead: string }): JSX.Element {
  if (!turn) return <div className="border-b border-l border-g3 px-4 py-2 text-sm text-g7">{instead}</div>;
  return (
    <div className="min-w-0 border-b border-l border-g3 px-4 py-2">
      <p className="num flex gap-2 text-xs text-g7">
        turn {turn.turn}
        {turnMarks(turn).map((mark) => (
          <span key={mark.kind} title={mark.label}>
            {markGlyphs[mark.kind]}
          </span>
        ))}
      </p>
      <TextPreview text={turn.sampled.text} cutCharacters={turn.sampled.cutCharacters} />
      {turn.calls.map((call) => (
        <div key={call.index} className="mt-1 border-l-2 border-g4 pl-2 text-g8">
          <TextPreview
            text={call.error ? `▲ ${call.error.code}: ${call.error.message}` : (call.output?.text ?? "…")}
            className={call.error ? "text-failed" : undefined}
          />
        </div>
      ))}
    </div>
  );
}
