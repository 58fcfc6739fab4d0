/**
 * What recorded rollouts took, played again. The fit says which of the rollouts are the slow ones, the records say how slow: the
 * longest of the draws takes the longest of the recorded times, the second the second. So little is still claimed of an instance that
 * was seen once, and nothing takes what no rollout took: a lognormal through times with two humps (short answers and long work,
 * opened sandboxes and reset ones) has a tail that made a step of them 2.5 times too long. Invariant: as many rollouts of each
 * instance as were recorded take together exactly what those took. Pure and deterministic, as drawWork is.
 */
import type { Stage } from "@rolldeck/contracts/lifecycle";
import type { NewGroup } from "@rolldeck/contracts/plan";
import { type DurationFit, drawLog, type RecordedStage } from "./durations.ts";
import type { RolloutKey, WorkOf } from "./rollout-work.ts";

interface Replay {
  readonly recorded: readonly RecordedStage[];
  readonly fit: DurationFit;
  readonly seed: number;
  /** Rollouts of a group at most. */
  readonly groupSize: number;
  /** No stage takes longer. */
  readonly limitsMs: Readonly<Record<Stage, number>>;
}

export function replayWork({ recorded, fit, seed, groupSize, limitsMs }: Replay): WorkOf {
  const sets = fit.map((_, taskSet) => {
    const own = recorded.filter((one) => one.taskSet === taskSet);
    return new RecordedSet(own.length > 0 ? own : recorded, fit[taskSet], { taskSet, seed, groupSize });
  });
  const capped = (stage: Stage, ms: number): number => Math.min(ms, limitsMs[stage]);
  return (key) => {
    const set = sets[key.instance.taskSet];
    if (set === undefined) return { initMs: 0, runMs: 0, evaluateMs: 0 };
    const init = set.rankOf("init", key);
    return {
      initMs: capped("init", atShare(set.opened, init)),
      resetMs: capped("init", atShare(set.reset, init)),
      runMs: capped("run", atShare(set.run, set.rankOf("run", key))),
      evaluateMs: capped("evaluate", atShare(set.evaluate, set.rankOf("evaluate", key))),
    };
  };
}

/** The value below which that share of them lies, 0–1. */
const atShare = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;

interface Draws {
  /** Ascending. */
  readonly logs: readonly number[];
  /** Share of the draws that are lower, by instance and its rollout. */
  readonly shares: ReadonlyMap<number, readonly number[]>;
}
interface Setting {
  readonly taskSet: number;
  readonly seed: number;
  readonly groupSize: number;
}

/** One task set's recorded times, ascending, and who takes which. */
class RecordedSet {
  readonly opened: readonly number[];
  /** What opening takes, where nobody has seen a reset; and the other way round. */
  readonly reset: readonly number[];
  readonly run: readonly number[];
  readonly evaluate: readonly number[];
  readonly #fit: DurationFit[number] | undefined;
  readonly #setting: Setting;
  /** Recorded rollouts by instance; empty where they are of other sets, whose instances say nothing of this one's. */
  readonly #seen = new Map<number, number>();
  readonly #draws = new Map<string, Draws>();

  constructor(recorded: readonly RecordedStage[], fit: DurationFit[number] | undefined, setting: Setting) {
    const msOf = (chosen: (one: RecordedStage) => boolean): number[] =>
      recorded.flatMap((one) => (chosen(one) ? [one.ms] : [])).sort((a, b) => a - b);
    const opened = msOf(({ stage, reset }) => stage === "init" && reset !== true);
    const reset = msOf((one) => one.stage === "init" && one.reset === true);
    this.opened = opened.length > 0 ? opened : reset;
    this.reset = reset.length > 0 ? reset : opened;
    this.run = msOf(({ stage }) => stage === "run");
    this.evaluate = msOf(({ stage }) => stage === "evaluate");
    this.#fit = fit;
    this.#setting = setting;
    for (const { taskSet, stage, instanceIndex } of recorded) {
      if (stage !== "run") continue;
      // Those of other sets are counted under numbers that no instance has: their draws are this set's as a whole.
      const instance = taskSet === setting.taskSet ? instanceIndex : -1 - instanceIndex;
      this.#seen.set(instance, (this.#seen.get(instance) ?? 0) + 1);
    }
  }

  /** Where the rollout lies among all, 0–1. */
  rankOf(stage: Stage, key: RolloutKey): number {
    const { instance, visit, sample, attempt } = key;
    const fitted = this.#fit?.[stage];
    if (fitted === undefined) return 0;
    const seen = this.#seen.get(instance.instanceIndex) ?? 0;
    if (seen > 0 && attempt === 1) {
      const nth = visit * this.#setting.groupSize + sample;
      const share = this.#drawn(stage, instance, Math.floor(nth / seen)).shares.get(instance.instanceIndex)?.[
        nth % seen
      ];
      if (share !== undefined) return share;
    }
    const { logs } = this.#drawn(stage, instance, 0);
    return placeIn(logs, drawLog(fitted, this.#setting.seed, stage, key)) / logs.length;
  }

  /** As many draws as there are records, for each time that an instance's records are used up. */
  #drawn(stage: Stage, { taskSet, split }: NewGroup, pass: number): Draws {
    const name = `${stage}:${split}:${pass}`;
    const known = this.#draws.get(name);
    if (known !== undefined) return known;
    const fitted = this.#fit?.[stage];
    const drawn: { readonly instanceIndex: number; readonly nth: number; readonly log: number }[] = [];
    for (const [instanceIndex, seen] of this.#seen) {
      for (let nth = 0; nth < seen && fitted !== undefined; nth++) {
        const key = { instance: { taskSet, split, instanceIndex }, visit: pass, sample: nth, attempt: 1 };
        drawn.push({ instanceIndex, nth, log: drawLog(fitted, this.#setting.seed, stage, key) });
      }
    }
    drawn.sort((a, b) => a.log - b.log);
    const shares = new Map([...this.#seen].map(([instance, seen]) => [instance, Array<number>(seen).fill(0)]));
    for (const [place, { instanceIndex, nth }] of drawn.entries()) {
      const own = shares.get(instanceIndex);
      // The middle of its part: times of another number are spread over the same ranks.
      if (own !== undefined) own[nth] = (place + 0.5) / drawn.length;
    }
    const draws = { logs: drawn.map(({ log }) => log), shares };
    this.#draws.set(name, draws);
    return draws;
  }
}

/** How many of them are below. @param sorted ascending */
function placeIn(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
