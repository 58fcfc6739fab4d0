/** What a run keeps, in words. Pure. */
import type { RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import type { KeepReason } from "@rolldeck/contracts/keep-reasons";
import { metrics } from "@rolldeck/contracts/metrics";
import { formatCount } from "../../format/numbers.ts";

type KeepBest = NonNullable<RunCheckpoints["rule"]["keepBest"]>;
interface ReasonWords {
  readonly label: string;
  readonly title: string;
}

export const reasonWords: Record<KeepReason, ReasonWords> = {
  newest: { label: "newest", title: "The run goes on from it after a crash: it always stays" },
  last: { label: "last", title: "Among the newest that the run keeps" },
  best: { label: "best", title: "Among the best that the run keeps" },
  pinned: { label: "pinned", title: "Somebody pinned it: it stays whatever the run keeps" },
  parent: { label: "parent", title: "Another run began, or is to begin, with it" },
  served: { label: "served", title: "It is being served" },
  start: { label: "start", title: "What the run itself began with" },
  "measure-awaited": { label: "being measured", title: "It may turn out to be among the best" },
};

/** Which step's point measures a version. */
export const measuredWords = (metric: KeepBest["metric"]): string =>
  metric.startsWith("evaluate/")
    ? "From the evaluation of this version."
    : "From the step whose rollouts it sampled, which is the next one.";

const counted = (count: number, what: string): string => (count === 1 ? what : `${formatCount(count)} ${what}`);

export function ruleWords({ every, keep, keepBest }: RunCheckpoints["rule"]): string {
  const saved = every === 1 ? "One every step" : `One every ${formatCount(every)} steps`;
  const last = `the ${counted(keep, "newest")}`;
  if (keepBest === null) return `${saved}; ${last} ${keep === 1 ? "is" : "are"} kept.`;
  const { count, metric, better } = keepBest;
  const way = better === metrics[metric].better ? "" : `, ${better === "lower" ? "low" : "high"} is good`;
  return `${saved}; ${last} and the ${counted(count, "best")} by ${metrics[metric].title.toLowerCase()}${way} are kept.`;
}
