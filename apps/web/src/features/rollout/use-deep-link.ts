"use client";
import { type RefObject, useEffect, useRef } from "react";
import type { ConversationHandle } from "./conversation.tsx";
import type { RolloutView } from "./use-rollout-view.ts";

/** A deep link is honoured once, when what it names has come. */
export function useDeepLink(
  { view, turns, selection, showTokens, store }: RolloutView,
  handle: RefObject<ConversationHandle | null>,
): void {
  const arrived = useRef(false);
  const ready = turns.length > 0 && (!showTokens || store.total > 0);
  const token = showTokens ? (selection?.start ?? null) : null;
  const { turn } = view;
  useEffect(() => {
    if (arrived.current || !ready) return;
    arrived.current = true;
    requestAnimationFrame(() => {
      if (token !== null) handle.current?.toToken(token);
      else if (turn !== null) handle.current?.toTurn(turn);
    });
  }, [ready, token, turn, handle]);
}
