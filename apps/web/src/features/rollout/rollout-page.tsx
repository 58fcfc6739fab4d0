"use client";
import { useRouter } from "next/navigation";
import { type JSX, type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { problemOf } from "../../api/problem.ts";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { shortenId } from "../../format/numbers.ts";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { useOrigin } from "../shell/use-origin.ts";
import { Conversation, type ConversationHandle } from "./conversation.tsx";
import { DetailPane } from "./detail-pane.tsx";
import { DialectBanner } from "./dialect-banner.tsx";
import { EvidencePane, hasEvidence, PaneTabs } from "./evidence/evidence-panes.tsx";
import { type Pane, paneLabels, panes } from "./evidence/panes.ts";
import { useEvidence } from "./evidence/use-evidence.ts";
import { FindBar } from "./find-bar.tsx";
import { Outline } from "./outline.tsx";
import { RolloutHeader } from "./rollout-header.tsx";
import { RolloutToolbar } from "./rollout-toolbar.tsx";
import { SiblingColumns } from "./sibling-columns.tsx";
import { useDeepLink } from "./use-deep-link.ts";
import { useRolloutKeys } from "./use-rollout-keys.ts";
import { type RolloutView, useRolloutView } from "./use-rollout-view.ts";

/** The trajectory inspector: outline, conversation (text or tokens), details. */
export function RolloutPage({ runId, rolloutId }: { runId: string; rolloutId: string }): JSX.Element {
  const state = useRolloutView(runId, rolloutId);
  const { setView, rollout } = state;
  const [collapsed, setCollapsed] = useState(false);
  const [finding, setFinding] = useState(false);
  const handle = useRef<ConversationHandle>(null);
  const goTurn = useCallback(
    (turn: number) => {
      void setView({ turn });
      handle.current?.toTurn(turn);
    },
    [setView],
  );
  const elsewhere = rollout !== undefined && rollout.runId !== runId;
  useHome(elsewhere ? rollout.runId : null, rolloutId);
  useRolloutCrumbs(runId, rolloutId, state);
  useRolloutKeys(runId, state, goTurn, setCollapsed, () => {
    void setView({ pane: "turns" });
    setFinding(true);
  });
  useDeepLink(state, handle);
  if (!rollout) return <NoRollout state={state} />;
  if (elsewhere)
    return (
      <EmptyState title="This rollout belongs to another run">
        <p>It is one of {rollout.runName}; its own address opens.</p>
      </EmptyState>
    );
  return (
    <>
      <RolloutHeader
        rollout={rollout}
        attempt={state.view.attempt ?? rollout.attempt}
        onAttempt={(attempt) => void setView({ attempt, turn: null, tok: null })}
      />
      {state.error && (
        <div className="px-4 pt-2">
          <ErrorBanner error={state.error} doing="load all of this rollout" onRetry={state.refresh} />
        </div>
      )}
      <Panes state={state} rollout={rollout}>
        <DialectBanner turns={state.turns} onTurn={goTurn} />
        <div className="flex min-h-0 flex-1">
          <aside className="max-md:hidden flex w-[288px] shrink-0 flex-col border-r border-g3 max-[1300px]:w-[232px] max-[1100px]:w-[180px]">
            <Outline turns={state.turns} current={state.current} onSelect={goTurn} />
          </aside>
          <section className="flex min-w-0 flex-1 flex-col" aria-label="Turns and tokens">
            <RolloutToolbar state={state} collapsed={collapsed} onCollapsed={setCollapsed} />
            {finding && <FindBar turns={state.turns} onGo={goTurn} onClose={() => setFinding(false)} />}
            {state.view.beside ? (
              <SiblingColumns
                rollout={rollout}
                chosen={state.view.beside.length > 0 ? state.view.beside : null}
                onChosen={(beside) => void setView({ beside: [...beside] })}
              />
            ) : (
              <Turns state={state} rollout={rollout} goTurn={goTurn} collapsed={collapsed} handle={handle} />
            )}
          </section>
          <Details state={state} rollout={rollout} path={`/runs/${runId}/t/${rolloutId}`} />
        </div>
      </Panes>
    </>
  );
}

/** Its turns, or one of the things it left behind; rows of tabs only where there are such. */
function Panes({
  state,
  rollout,
  children,
}: {
  state: RolloutView;
  rollout: Rollout;
  /** The turns. */
  children: ReactNode;
}): JSX.Element {
  const { view, setView } = state;
  const evidence = useEvidence(rollout, view.attempt ?? rollout.attempt);
  const shown = hasEvidence(evidence) || view.pane !== "turns";
  const onPane = (pane: Pane) => void setView({ pane });
  useKeys(
    "What it left",
    shown
      ? panes.map((pane, index) => ({ keys: String(index + 1), label: paneLabels[pane], run: () => onPane(pane) }))
      : [],
  );
  return (
    <>
      {shown && <PaneTabs evidence={evidence} pane={view.pane} onPane={onPane} />}
      {view.pane === "turns" ? (
        <div
          {...(shown ? { role: "tabpanel", id: "panel-turns", "aria-labelledby": "tab-turns" } : {})}
          className="flex min-h-0 flex-1 flex-col"
        >
          {children}
        </div>
      ) : (
        <EvidencePane pane={view.pane} rollout={rollout} evidence={evidence} state={state} onPane={onPane} />
      )}
    </>
  );
}

/** A rollout has one address, under its own run: any other leads there, what the link points at included. */
function useHome(runId: string | null, rolloutId: string): void {
  const router = useRouter();
  useEffect(() => {
    if (runId !== null) router.replace(`/runs/${runId}/t/${rolloutId}${window.location.search}`);
  }, [router, runId, rolloutId]);
}

function useRolloutCrumbs(runId: string, rolloutId: string, { rollout }: RolloutView): void {
  const evaluate = rollout?.purpose === "evaluate" ? "&purpose=evaluate" : "";
  useCrumbs([
    { label: "Runs", href: "/runs" },
    { label: rollout?.runName ?? shortenId(runId), href: `/runs/${runId}` },
    {
      label: rollout ? `${rollout.purpose === "evaluate" ? "version" : "step"} ${rollout.step}` : "rollout",
      href: rollout ? `/runs/${runId}?tab=rollouts&step=${rollout.step}${evaluate}` : "",
    },
    { label: rollout ? `${rollout.instanceId} · ${rollout.sample + 1}` : shortenId(rolloutId) },
  ]);
}

function NoRollout({ state }: { state: RolloutView }): JSX.Element {
  if (state.detailError) {
    const doing = problemOf(state.detailError).status === 404 ? "find this rollout" : "load this rollout";
    return (
      <div className="p-4">
        <ErrorBanner error={state.detailError} doing={doing} onRetry={state.refresh} />
      </div>
    );
  }
  return (
    <div className="flex flex-col gap-3 p-4">
      <Skeleton className="h-10" />
      <Skeleton className="h-[60vh]" />
    </div>
  );
}

type Rollout = NonNullable<RolloutView["rollout"]>;

function Turns({
  state,
  rollout,
  goTurn,
  collapsed,
  handle,
}: {
  state: RolloutView;
  rollout: Rollout;
  goTurn(turn: number): void;
  collapsed: boolean;
  handle: React.RefObject<ConversationHandle | null>;
}): JSX.Element {
  const { setView } = state;
  const live = rollout.state !== "settled";
  const { rolloutId } = rollout;
  const attempt = state.view.attempt ?? rollout.attempt;
  const onCurrent = useCallback((turn: number) => void setView({ turn }), [setView]);
  const artifactHref = useCallback(
    (turn: number, index: number, name: string) =>
      `/api/v1/rollouts/${rolloutId}/artifacts/${turn}/${index}/${encodeURIComponent(name)}?attempt=${attempt}`,
    [rolloutId, attempt],
  );
  if (state.turns.length === 0 && !state.loadingTurns)
    return (
      <EmptyState title="No turn yet">
        <p>
          {live
            ? `The rollout is ${rollout.state} in ${rollout.stage}; turns appear here as they are sampled.`
            : "This attempt ended before its first turn."}
        </p>
      </EmptyState>
    );
  return (
    <Conversation
      turns={state.turns}
      store={state.store}
      showTokens={state.showTokens}
      mode={state.view.colour}
      largestAdvantage={state.largestAdvantage}
      current={state.current}
      onCurrent={onCurrent}
      onGo={goTurn}
      agents={state.agents}
      artifactHref={artifactHref}
      collapsed={collapsed}
      selection={state.selection}
      onSelection={(tok) => void setView({ tok, tokens: true })}
      live={live}
      handle={handle}
    />
  );
}

function Details({ state, rollout, path }: { state: RolloutView; rollout: Rollout; path: string }): JSX.Element {
  const origin = useOrigin();
  const { turns, current, selection, showTokens, store, view } = state;
  return (
    <aside aria-label="Details" className="w-[280px] shrink-0 overflow-auto border-l border-g3 max-[1100px]:hidden">
      <DetailPane
        rollout={rollout}
        turns={turns}
        turn={turns.find((turn) => turn.turn === current) ?? null}
        token={selection && showTokens ? store.at(selection.start) : null}
        link={`${origin}${path}?turn=${current}${view.tok ? `&tok=${view.tok}` : ""}`}
      />
    </aside>
  );
}
