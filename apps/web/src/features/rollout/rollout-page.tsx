"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { parseAsBoolean, parseAsInteger, parseAsString, parseAsStringLiteral, useQueryStates } from "nuqs";
import { type JSX, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { Kbd } from "../../design/kbd.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { formatCount } from "../../format/numbers.ts";
import { useRunEvents } from "../../live/live-provider.tsx";
import { useThrottled } from "../../live/throttle.ts";
import { useKeys } from "../shell/keys.ts";
import { useCrumbs } from "../shell/page-header.ts";
import { useOrigin } from "../shell/use-origin.ts";
import { Conversation, type ConversationHandle } from "./conversation.tsx";
import { parseTokenRange } from "./conversation-rows.ts";
import { DetailPane } from "./detail-pane.tsx";
import { Outline } from "./outline.tsx";
import { RolloutHeader } from "./rollout-header.tsx";
import { modeLabels, tokenModes } from "./token-colour.ts";
import { useTokenStore } from "./token-store.ts";
import { useNeighbours } from "./use-neighbours.ts";
import { turnsKey, useTurns } from "./use-turns.ts";

export function RolloutPage({ runId, rolloutId }: { runId: string; rolloutId: string }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const router = useRouter();
  const origin = useOrigin();
  const [view, setView] = useQueryStates(
    {
      turn: parseAsInteger,
      tok: parseAsString,
      tokens: parseAsBoolean,
      colour: parseAsStringLiteral(tokenModes).withDefault("logprob"),
      attempt: parseAsInteger,
    },
    { history: "replace" },
  );
  const attempt = view.attempt ?? undefined;
  const detail = useQuery(
    trpc.rollouts.get.queryOptions(
      { rolloutId, attempt },
      { placeholderData: (known) => known, refetchInterval: 15_000 },
    ),
  );
  const rollout = detail.data;
  const { query: turnsQuery, turns } = useTurns(rolloutId, attempt);
  const run = useQuery(trpc.runs.get.queryOptions({ runId }));
  const selection = parseTokenRange(view.tok);
  const showTokens = view.tokens ?? selection !== null;
  const tokens = useTokenStore(rolloutId, attempt, rollout?.tokens.total ?? 0, showTokens);
  const [collapsed, setCollapsed] = useState(false);
  const handle = useRef<ConversationHandle>(null);
  const live = rollout !== undefined && rollout.state !== "settled";
  const neighbours = useNeighbours(rollout ?? null);

  const refresh = useThrottled(() => {
    void client.invalidateQueries(trpc.rollouts.get.queryFilter({ rolloutId }));
    void client.invalidateQueries({ queryKey: turnsKey(rolloutId, attempt) });
    void client.invalidateQueries(trpc.rollouts.tokens.queryFilter({ rolloutId }));
  }, 500);
  useRunEvents(runId, run.data?.head ?? null, (events) => {
    const touches = events.some(
      ({ body }) =>
        ("rolloutId" in body && body.rolloutId === rolloutId) ||
        // Trained, or not: facts about its step may have changed its fate.
        (body.type === "step-status" && body.step === rollout?.step && body.purpose === rollout.purpose),
    );
    if (touches) refresh();
  });
  useCrumbs([
    { label: "Runs", href: "/runs" },
    { label: rollout?.runName ?? runId, href: `/runs/${runId}` },
    {
      label: rollout ? `step ${rollout.step}` : "rollout",
      href: rollout
        ? `/runs/${runId}?tab=rollouts&step=${rollout.step}${rollout.purpose === "evaluate" ? "&purpose=evaluate" : ""}`
        : "",
    },
    { label: rollout ? `${rollout.instanceId} · ${rollout.sample + 1}` : rolloutId },
  ]);

  const current = view.turn ?? turns[0]?.turn ?? 0;
  const goTurn = useCallback(
    (turn: number) => {
      void setView({ turn });
      handle.current?.toTurn(turn);
    },
    [setView],
  );
  const markTurn = useCallback((turn: number) => void setView({ turn }), [setView]);
  const step = (by: number) => {
    const at = turns.findIndex((turn) => turn.turn === current);
    const next = turns[Math.min(turns.length - 1, Math.max(0, at + by))];
    if (next) goTurn(next.turn);
  };
  const open = (id: string | null) => id && router.push(`/runs/${runId}/t/${id}`);
  useKeys("Rollout", [
    { keys: "j", label: "Next turn", run: () => step(1) },
    { keys: "k", label: "Previous turn", run: () => step(-1) },
    { keys: "gg", label: "First turn", run: () => turns[0] && goTurn(turns[0].turn) },
    { keys: "G", label: "Last turn", run: () => turns.at(-1) && goTurn(turns.at(-1)?.turn ?? 0) },
    {
      keys: "t",
      label: "Tokens or text",
      run: () => void setView({ tokens: !showTokens, tok: showTokens ? null : view.tok }),
    },
    { keys: "e", label: "Expand all turns", run: () => setCollapsed(false) },
    { keys: "w", label: "Collapse all turns", run: () => setCollapsed(true) },
    { keys: "ArrowLeft", label: "Previous rollout of the group", run: () => open(neighbours.previousSibling) },
    { keys: "ArrowRight", label: "Next rollout of the group", run: () => open(neighbours.nextSibling) },
    { keys: "n", label: "Next group", run: () => open(neighbours.nextGroup) },
    { keys: "p", label: "Previous group", run: () => open(neighbours.previousGroup) },
  ]);

  // A deep link is honoured once, when what it names has come.
  const arrived = useRef(false);
  const wantedTurn = view.turn;
  const wantedToken = selection?.start ?? null;
  const tokensReady = !showTokens || tokens.store.total > 0;
  useEffect(() => {
    if (arrived.current || turns.length === 0 || !tokensReady) return;
    arrived.current = true;
    requestAnimationFrame(() => {
      if (wantedToken !== null && showTokens) handle.current?.toToken(wantedToken);
      else if (wantedTurn !== null) handle.current?.toTurn(wantedTurn);
    });
  }, [turns.length, tokensReady, wantedToken, wantedTurn, showTokens]);

  const largestAdvantage = useMemo(() => {
    let most = 0;
    for (let index = 0; index < tokens.store.total; index += 1)
      most = Math.max(most, Math.abs(tokens.store.at(index)?.advantage ?? 0));
    return most;
  }, [tokens.store]);

  if (!rollout) {
    return detail.error ? (
      <div className="p-4">
        <ErrorBanner
          error={detail.error}
          doing={problemOf(detail.error).status === 404 ? "find this rollout" : "load this rollout"}
          onRetry={() => void detail.refetch()}
        />
      </div>
    ) : (
      <div className="flex flex-col gap-3 p-4">
        <Skeleton className="h-10" />
        <Skeleton className="h-[60vh]" />
      </div>
    );
  }
  const link = `${origin}/runs/${runId}/t/${rolloutId}?turn=${current}${view.tok ? `&tok=${view.tok}` : ""}`;
  return (
    <>
      <RolloutHeader rollout={rollout} onAttempt={(next) => void setView({ attempt: next, turn: null, tok: null })} />
      {(detail.error || turnsQuery.error || tokens.error) && (
        <div className="px-4 pt-2">
          <ErrorBanner
            error={detail.error ?? turnsQuery.error ?? tokens.error}
            doing="load all of this rollout"
            onRetry={refresh}
          />
        </div>
      )}
      <div className="flex min-h-0 flex-1">
        <aside className="flex w-[232px] shrink-0 flex-col border-r border-g3 max-[1100px]:w-[180px]">
          <Outline turns={turns} current={current} onSelect={goTurn} />
        </aside>
        <section className="flex min-w-0 flex-1 flex-col" aria-label="Turns and tokens">
          <div className="flex h-10 shrink-0 items-center gap-3 border-b border-g3 px-4">
            <Segmented
              label="Show"
              options={[
                { value: "text", label: "Text", title: "t" },
                { value: "tokens", label: "Tokens", title: "t" },
              ]}
              value={showTokens ? "tokens" : "text"}
              onChange={(value) =>
                void setView({ tokens: value === "tokens", tok: value === "tokens" ? view.tok : null })
              }
            />
            {showTokens ? (
              <Segmented
                label="Colour"
                options={tokenModes.map((mode) => ({ value: mode, ...modeLabels[mode] }))}
                value={view.colour}
                onChange={(colour) => void setView({ colour })}
              />
            ) : (
              <Button look="quiet" className="h-7" onClick={() => setCollapsed(!collapsed)}>
                {collapsed ? "Expand all" : "Collapse all"}
              </Button>
            )}
            <span className="flex-1" />
            {!showTokens && (
              <span className="flex items-center gap-1 text-xs whitespace-nowrap text-g7">
                <Kbd>j</Kbd>
                <Kbd>k</Kbd> turn <Kbd>t</Kbd> tokens
              </span>
            )}
            <span className="num text-sm whitespace-nowrap text-g7">
              {formatCount(turns.length)} {turns.length === 1 ? "turn" : "turns"} · {formatCount(rollout.tokens.total)}{" "}
              tokens
            </span>
          </div>
          {turns.length === 0 && !turnsQuery.isPending ? (
            <EmptyState title="No turn yet">
              <p>
                {live
                  ? `The rollout is ${rollout.state} in ${rollout.stage}; turns appear here as they are sampled.`
                  : "This attempt ended before its first turn."}
              </p>
            </EmptyState>
          ) : (
            <Conversation
              turns={turns}
              store={tokens.store}
              showTokens={showTokens}
              mode={view.colour}
              largestAdvantage={largestAdvantage}
              current={current}
              onCurrent={markTurn}
              collapsed={collapsed}
              selection={selection}
              onSelection={(tok) => void setView({ tok, tokens: true })}
              live={live}
              handle={handle}
            />
          )}
        </section>
        <aside aria-label="Details" className="w-[280px] shrink-0 overflow-auto border-l border-g3 max-[1100px]:hidden">
          <DetailPane
            rollout={rollout}
            turn={turns.find((turn) => turn.turn === current) ?? null}
            token={selection && showTokens ? tokens.store.at(selection.start) : null}
            link={link}
          />
        </aside>
      </div>
    </>
  );
}
