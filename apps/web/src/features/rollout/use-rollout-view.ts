"use client";
/** What the address says of the inspector, and the rows behind it, kept true while the rollout lives. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  parseAsArrayOf,
  parseAsBoolean,
  parseAsInteger,
  parseAsString,
  parseAsStringLiteral,
  useQueryStates,
} from "nuqs";
import { useMemo } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { useRunEvents } from "../../live/live-provider.tsx";
import { useThrottled } from "../../live/throttle.ts";
import { parseTokenRange, turnOfToken } from "./conversation-rows.ts";
import { panes } from "./evidence/panes.ts";
import { artifactsKey } from "./evidence/use-evidence.ts";
import { inReadingOrder, subAgents } from "./thread-tree.ts";
import { tokenModes } from "./token-colour.ts";
import { useTokenStore } from "./token-store.ts";
import { turnsKey, useTurns } from "./use-turns.ts";

const refreshMs = 500;

export function useRolloutView(runId: string, rolloutId: string) {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [view, setView] = useQueryStates(
    {
      turn: parseAsInteger,
      tok: parseAsString,
      tokens: parseAsBoolean,
      colour: parseAsStringLiteral(tokenModes).withDefault("logprob"),
      attempt: parseAsInteger,
      /** The turns, or something that the rollout left behind. */
      pane: parseAsStringLiteral(panes).withDefault("turns"),
      /** Ids of siblings beside this rollout; empty: the usual ones. Absent: the rollout alone. */
      beside: parseAsArrayOf(parseAsString),
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
  const run = useQuery(trpc.runs.get.queryOptions({ runId }));
  const { query: turnsQuery, turns: committed } = useTurns(rolloutId, attempt);
  const turns = useMemo(() => inReadingOrder(committed), [committed]);
  const agents = useMemo(() => subAgents(committed), [committed]);
  const selection = useMemo(() => parseTokenRange(view.tok), [view.tok]);
  const showTokens = view.tokens ?? selection !== null;
  const rollout = detail.data;
  const tokens = useTokenStore(rolloutId, attempt, rollout?.tokens.total ?? 0, showTokens);

  const refresh = useThrottled(() => {
    void client.invalidateQueries(trpc.rollouts.get.queryFilter({ rolloutId }));
    void client.invalidateQueries({ queryKey: turnsKey(rolloutId, attempt) });
    void client.invalidateQueries(trpc.rollouts.tokens.queryFilter({ rolloutId }));
    void client.invalidateQueries({ queryKey: artifactsKey(rolloutId) });
    void client.invalidateQueries(trpc.sandboxes.ofRollout.queryFilter({ rolloutId }));
  }, refreshMs);
  useRunEvents(runId, run.data?.head ?? null, (events) => {
    const touches = events.some(
      ({ body }) =>
        ("rolloutId" in body && body.rolloutId === rolloutId) ||
        // Trained, or not: what its step did may have changed its fate.
        (body.type === "step-status" && body.step === rollout?.step && body.purpose === rollout.purpose),
    );
    if (touches) refresh();
  });
  const largestAdvantage = useMemo(() => {
    let most = 0;
    for (let index = 0; index < tokens.store.total; index += 1)
      most = Math.max(most, Math.abs(tokens.store.at(index)?.advantage ?? 0));
    return most;
  }, [tokens.store]);
  return {
    view,
    setView,
    rollout,
    turns,
    agents,
    selection,
    showTokens,
    store: tokens.store,
    largestAdvantage,
    current: view.turn ?? (selection && turnOfToken(turns, selection.start)) ?? turns[0]?.turn ?? 0,
    loadingTurns: turnsQuery.isPending,
    detailError: detail.error,
    error: detail.error ?? turnsQuery.error ?? tokens.error,
    refresh,
  };
}
export type RolloutView = ReturnType<typeof useRolloutView>;
