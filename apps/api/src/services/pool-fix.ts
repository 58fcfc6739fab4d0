/** What would give a run more of a pool: whatever bounds its share now, in the order in which a sharing heeds it. Pure. */
import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import type { Resource } from "@rolldeck/contracts/plan";

const words: Readonly<Record<Resource, string | null>> = {
  sandbox: "sandboxes",
  initSlot: "init slots",
  runSlot: "run slots",
  gradeSlot: "grading slots",
  // How many there are is the operator's hardware.
  gpu: null,
};

/** @returns null where nobody can do anything */
export function poolFix(resource: Resource, runId: string, pools: readonly PoolInfo[]): string | null {
  const pool = pools.find((one) => one.resource === resource);
  const things = words[resource];
  if (pool === undefined || things === null) return null;
  return quotaFix(pool, things, runId, pools) ?? shareFix(pool, things, runId);
}

/** The run itself may wait for the pool without being counted to it: its line is that of another. */
function quotaFix(pool: PoolInfo, things: string, runId: string, pools: readonly PoolInfo[]): string | null {
  const project = pools.flatMap(({ runs }) => runs).find((run) => run.runId === runId)?.project;
  const limit = pool.quotas.find((one) => one.project === project);
  if (limit === undefined) return null;
  const mates = pool.runs.filter((run) => run.project === project);
  if (Math.max(limit.held, spokenFor(mates)) < limit.quota) return null;
  const others = spokenFor(mates.filter((run) => run.runId !== runId));
  const share = others > 0 ? ", or raise this run's priority or weight" : "";
  return `Project ${limit.project} has its whole quota of ${limit.quota} ${things}: raise it on the Schedule page${share}.`;
}

function shareFix({ size, used, kept, evaluationReserve, runs }: PoolInfo, things: string, runId: string): string {
  const others = spokenFor(runs.filter((run) => run.runId !== runId));
  if (others > 0)
    return `Other runs have ${others} of the ${size} ${things}: raise this run's priority or weight, or enlarge the pool.`;
  if (evaluationReserve > 0 && used < size && used + evaluationReserve >= size)
    return `The last ${evaluationReserve} of the ${size} ${things} are kept for evaluation: lower the reserve, or enlarge the pool.`;
  if (kept > 0)
    return `${kept} of the ${size} ${things} are kept for people: close those that nobody needs, or enlarge the pool.`;
  return `Enlarge the pool of ${things} on the Schedule page, now ${size}.`;
}

/** What was granted is as good as held. */
const spokenFor = (runs: PoolInfo["runs"]): number =>
  runs.reduce((sum, { held, granted }) => sum + Math.max(held, granted ?? 0), 0);
