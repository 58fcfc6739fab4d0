/**
 * Shares one pool among the runs that want it: weighted max-min fair in whole leases, one lease after the other to whoever has
 * least for its weight. Invariants: nobody gets less than it holds nor more than it wants; the sum is at most the pool's size
 * unless more is held already; a larger pool takes nothing from anyone; with a lease for every run, every run that wants one
 * gets one, and with fewer those that have waited longest do.
 */
import type { Demand } from "@rolldeck/contracts/plan";

interface Share {
  readonly demand: Demand;
  granted: number;
}

/** @returns leases each run may hold in all, by run id */
export function share(size: number, demands: readonly Demand[]): Map<string, number> {
  const shares = demands.map((demand): Share => ({ demand, granted: demand.held }));
  const hungry = new Set(shares.filter(isHungry));
  let free = size - shares.reduce((sum, { granted }) => sum + granted, 0);
  for (; free > 0 && hungry.size > 0; free--) {
    const next = neediest(hungry);
    if (next === null) break;
    next.granted += 1;
    if (!isHungry(next)) hungry.delete(next);
  }
  return new Map(shares.map(({ demand, granted }) => [demand.runId, granted]));
}

const isHungry = ({ demand, granted }: Share): boolean => granted < demand.wanted;

function neediest(shares: Iterable<Share>): Share | null {
  let least: Share | null = null;
  for (const candidate of shares) if (least === null || comesBefore(candidate, least)) least = candidate;
  return least;
}

function comesBefore(a: Share, b: Share): boolean {
  const byLevel = a.granted / a.demand.weight - b.granted / b.demand.weight;
  if (byLevel !== 0) return byLevel < 0;
  const since = (share: Share): number => share.demand.waitingSince ?? Number.POSITIVE_INFINITY;
  if (since(a) !== since(b)) return since(a) < since(b);
  return a.demand.runId < b.demand.runId;
}
