/**
 * Shares one pool among the runs that want it, in whole leases, one after the other: a first one to each run, longest waiting first;
 * then the pool's reserve to evaluation rollouts; then by priority, and within one priority weighted max-min fair, to whoever has
 * least for its weight. Nothing held is taken back: a run gives way when its stages end. Invariants: nobody gets less than it
 * holds nor more than it wants; the sum is at most the pool's size, that of a project at most its quota, and train rollouts leave
 * the reserve free, unless more is held already (or the reserve leaves no first lease); a larger pool takes nothing from anyone;
 * with a lease for every run, every run that wants one gets one, and with fewer those that have waited longest do.
 */
import type { Demand } from "@rolldeck/contracts/plan";

export interface ShareLimits {
  /** Leases a project's runs may hold in all, by its name; a project without has no limit. */
  readonly quotas?: ReadonlyMap<string, number>;
  /** Leases of the pool that only evaluation rollouts may take. Default 0. */
  readonly evaluationReserve?: number;
}

interface Share {
  readonly demand: Demand;
  granted: number;
}

/** @returns leases each run may hold in all, by run id */
export function share(size: number, demands: readonly Demand[], limits: ShareLimits = {}): Map<string, number> {
  const sharing = new Sharing(size, demands, limits);
  const { evaluationReserve = 0 } = limits;
  sharing.give(sharing.free, ({ granted }) => granted === 0, byWaiting);
  const reserved = Math.min(sharing.free, Math.max(0, evaluationReserve - sharing.evaluating));
  sharing.give(reserved, wantsToEvaluate, byNeed);
  // What the reserve has not lent out is left in it.
  const common = size - Math.max(0, evaluationReserve - sharing.evaluating) - sharing.granted;
  sharing.give(common, () => true, byNeed);
  return new Map(sharing.shares.map(({ demand, granted }) => [demand.runId, granted]));
}

class Sharing {
  readonly shares: readonly Share[];
  readonly #size: number;
  readonly #left: Map<string, number>;

  constructor(size: number, demands: readonly Demand[], { quotas = new Map() }: ShareLimits) {
    this.#size = size;
    this.shares = demands.map((demand): Share => ({ demand, granted: demand.held }));
    this.#left = new Map(quotas);
    for (const { project, held } of demands) {
      const left = project === undefined ? undefined : this.#left.get(project);
      // More may be held than a quota that was lowered allows.
      if (project !== undefined && left !== undefined) this.#left.set(project, left - held);
    }
  }

  get granted(): number {
    return this.shares.reduce((sum, { granted }) => sum + granted, 0);
  }

  get free(): number {
    return this.#size - this.granted;
  }

  /** Leases that serve evaluation rollouts: a run's first ones, as it admits those first. */
  get evaluating(): number {
    return this.shares.reduce((sum, { demand, granted }) => sum + Math.min(granted, demand.evaluating ?? 0), 0);
  }

  /** Gives at most `count` leases, each to the first of those that may have one. */
  give(count: number, may: (share: Share) => boolean, order: (a: Share, b: Share) => number): void {
    const hungry = new Set(this.shares.filter((one) => isHungry(one) && may(one)));
    for (let left = count; left > 0 && hungry.size > 0; ) {
      const next = first(hungry, order);
      if (next === null) return;
      if (!this.#spend(next.demand.project)) {
        hungry.delete(next);
        continue;
      }
      next.granted += 1;
      left -= 1;
      if (!isHungry(next) || !may(next)) hungry.delete(next);
    }
  }

  /** @returns whether the project's quota allowed one more */
  #spend(project: string | undefined): boolean {
    const left = project === undefined ? undefined : this.#left.get(project);
    if (project === undefined || left === undefined) return true;
    if (left <= 0) return false;
    this.#left.set(project, left - 1);
    return true;
  }
}

const isHungry = ({ demand, granted }: Share): boolean => granted < demand.wanted;
const wantsToEvaluate = ({ demand, granted }: Share): boolean => granted < (demand.evaluating ?? 0);

function first(shares: Iterable<Share>, order: (a: Share, b: Share) => number): Share | null {
  let least: Share | null = null;
  for (const candidate of shares) if (least === null || order(candidate, least) < 0) least = candidate;
  return least;
}

/** Who waits longest; ties by priority. */
const byWaiting = (a: Share, b: Share): number =>
  compare(since(a), since(b)) || priorityOf(b) - priorityOf(a) || compare(a.demand.runId, b.demand.runId);

/** The highest priority; within it who has least for its weight, then who waits longest. */
const byNeed = (a: Share, b: Share): number =>
  priorityOf(b) - priorityOf(a) ||
  compare(a.granted / a.demand.weight, b.granted / b.demand.weight) ||
  compare(since(a), since(b)) ||
  compare(a.demand.runId, b.demand.runId);

const priorityOf = ({ demand }: Share): number => demand.priority ?? 0;
const since = ({ demand }: Share): number => demand.waitingSince ?? Number.POSITIVE_INFINITY;
const compare = <T extends number | string>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);
