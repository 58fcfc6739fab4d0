/**
 * Turns of all agents of a rollout as a tree: a sub-agent's turns stand below the turn whose call made it, whenever they were
 * committed. Pure.
 */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";

export interface SubAgent {
  readonly thread: string;
  readonly firstTurn: number;
  readonly turns: number;
}
type Threaded = Pick<TurnView, "turn" | "thread" | "calls">;

/** The call that made a thread's agent; null for the rollout's own. */
export function callOfThread(thread: string): { readonly turn: number; readonly index: number } | null {
  const match = /(?:^|\/)(\d+)\.(\d+)$/.exec(thread);
  return match ? { turn: Number(match[1]), index: Number(match[2]) } : null;
}

/** 0 for the rollout's own agent. */
export const depthOf = (thread: string): number => (thread === "" ? 0 : thread.split("/").length);

export function subAgents(turns: readonly Threaded[]): Map<string, SubAgent> {
  const agents = new Map<string, SubAgent>();
  for (const { thread, turn } of turns) {
    if (thread === "") continue;
    const known = agents.get(thread);
    agents.set(thread, { thread, firstTurn: known?.firstTurn ?? turn, turns: (known?.turns ?? 0) + 1 });
  }
  return agents;
}

/** The reading order: each turn, then the agents that its calls made, then the thread's next turn. Loses no turn. */
export function inReadingOrder<T extends Threaded>(turns: readonly T[]): T[] {
  const byThread = new Map<string, T[]>();
  for (const turn of turns) byThread.set(turn.thread, [...(byThread.get(turn.thread) ?? []), turn]);
  const childrenOf = new Map<number, string[]>();
  for (const thread of byThread.keys()) {
    const call = callOfThread(thread);
    if (call) childrenOf.set(call.turn, [...(childrenOf.get(call.turn) ?? []), thread]);
  }
  const out: T[] = [];
  const done = new Set<string>();
  const walk = (thread: string): void => {
    if (done.has(thread)) return;
    done.add(thread);
    for (const turn of byThread.get(thread) ?? []) {
      out.push(turn);
      for (const child of (childrenOf.get(turn.turn) ?? []).sort(byIndex)) walk(child);
    }
  };
  walk("");
  // A page may not hold the turn that made a thread yet.
  for (const thread of byThread.keys()) walk(thread);
  return out;
}

const byIndex = (a: string, b: string): number => (callOfThread(a)?.index ?? 0) - (callOfThread(b)?.index ?? 0);
