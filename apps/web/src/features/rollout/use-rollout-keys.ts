"use client";
import { useRouter } from "next/navigation";
import { useKeys } from "../shell/keys.ts";
import { useNeighbours } from "./use-neighbours.ts";
import type { RolloutView } from "./use-rollout-view.ts";

/** Turns by j/k, tokens by t, siblings by arrows, groups by n/p. */
export function useRolloutKeys(
  runId: string,
  { view, setView, rollout, turns, showTokens, current }: RolloutView,
  goTurn: (turn: number) => void,
  setCollapsed: (collapsed: boolean) => void,
  find: () => void,
): void {
  const router = useRouter();
  const neighbours = useNeighbours(rollout ?? null);
  const step = (by: number) => {
    const at = turns.findIndex((turn) => turn.turn === current);
    const next = turns[Math.min(turns.length - 1, Math.max(0, at + by))];
    if (next) goTurn(next.turn);
  };
  const open = (id: string | null) => id && router.push(`/runs/${runId}/t/${id}`);
  const first = turns[0];
  const last = turns.at(-1);
  useKeys("Rollout", [
    { keys: "j", label: "Next turn", run: () => step(1) },
    { keys: "k", label: "Previous turn", run: () => step(-1) },
    { keys: "gg", label: "First turn", run: () => first && goTurn(first.turn) },
    { keys: "G", label: "Last turn", run: () => last && goTurn(last.turn) },
    {
      keys: "t",
      label: "Tokens or text",
      run: () => void setView({ tokens: !showTokens, tok: showTokens ? null : view.tok }),
    },
    { keys: "mod+f", label: "Find in all turns", run: find },
    { keys: "d", label: "Siblings side by side", run: () => void setView({ beside: view.beside ? null : [] }) },
    { keys: "e", label: "Expand all turns", run: () => setCollapsed(false) },
    { keys: "w", label: "Collapse all turns", run: () => setCollapsed(true) },
    { keys: "ArrowLeft", label: "Previous rollout of the group", run: () => open(neighbours.previousSibling) },
    { keys: "ArrowRight", label: "Next rollout of the group", run: () => open(neighbours.nextSibling) },
    { keys: "n", label: "Next group", run: () => open(neighbours.nextGroup) },
    { keys: "p", label: "Previous group", run: () => open(neighbours.previousGroup) },
  ]);
}
