/**
 * Which replica samples a rollout's next turn. Pure. Invariants: a rollout stays where its cache is while that replica answers; one that
 * is new, or whose replica is gone, goes where the fewest are; nobody else moves when a replica comes or goes.
 */
import { rankTargets } from "../resilient/rank-targets.ts";

/** Where a rollout's last turn was sampled. */
export interface Route {
  readonly replica: string;
  /** Of its newest request, milliseconds. */
  readonly usedAt: number;
}

/** A rollout that has asked for nothing for so long is over, or runs a long tool: it weighs nothing. */
const restingMs = 60_000;

/**
 * @param routes by affinity key @param replicas names of those that answer now
 * @returns one of them, null where there is none
 */
export function chooseReplica(
  routes: ReadonlyMap<string, Route>,
  { key, replicas, now }: { readonly key: string; readonly replicas: readonly string[]; readonly now: number },
): string | null {
  const known = routes.get(key)?.replica;
  if (known !== undefined && replicas.includes(known)) return known;
  const loads = new Map(replicas.map((name) => [name, 0]));
  for (const { replica, usedAt } of routes.values()) {
    const load = loads.get(replica);
    if (load !== undefined && now - usedAt < restingMs) loads.set(replica, load + 1);
  }
  // Of equals the one that every process would choose.
  const order = [...replicas].sort();
  const ranked = rankTargets(order, key).map((at) => order[at]);
  const least = Math.min(...loads.values());
  return ranked.find((name) => name !== undefined && loads.get(name) === least) ?? null;
}
