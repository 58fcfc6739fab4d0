/** How long rollouts are expected to take yet, from earlier rollouts of their instances. */
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { GroupSnapshot, RolloutSnapshot, RunSnapshot } from "@rolldeck/contracts/plan";

export type StageTimes = Readonly<Record<Stage, number>>;

export class ExpectedTimes {
  readonly #byGroup: ReadonlyMap<string, StageTimes>;
  readonly #unknown: StageTimes | null;
  readonly #limits: StageTimes;

  constructor({ groups = [], config }: RunSnapshot) {
    const known = groups.filter(isKnown);
    this.#byGroup = new Map(known.map(({ groupId, expectedMs }) => [groupId, expectedMs]));
    this.#unknown = known.length === 0 ? null : geometricMean(known.map(({ expectedMs }) => expectedMs));
    this.#limits = config.dispatcher.stageTimeoutMs;
  }

  /** What earlier rollouts of the same instance took, milliseconds, no longer than the stage may; null = never seen. */
  ofInstance(groupId: string, stage: Stage): number | null {
    const times = this.#byGroup.get(groupId);
    return times === undefined ? null : Math.min(times[stage], this.#limits[stage]);
  }

  /**
   * From the rollout's present stage to its reward, less init, milliseconds: an instance never seen counts as the geometric mean
   * of those that were. Null = nothing is known of any.
   */
  remaining({ groupId, stage }: Pick<RolloutSnapshot, "groupId" | "stage">): number | null {
    const times = this.#byGroup.get(groupId) ?? this.#unknown;
    if (times === null) return null;
    const evaluate = Math.min(times.evaluate, this.#limits.evaluate);
    return stage === "evaluate" ? evaluate : Math.min(times.run, this.#limits.run) + evaluate;
  }
}

const isKnown = (group: GroupSnapshot): group is GroupSnapshot & { readonly expectedMs: StageTimes } =>
  group.expectedMs !== null;

function geometricMean(times: readonly StageTimes[]): StageTimes {
  const of = (stage: Stage): number =>
    Math.exp(times.reduce((sum, one) => sum + Math.log(Math.max(one[stage], 1)), 0) / times.length);
  const [init, run, evaluate] = stages.map(of);
  return { init: init ?? 0, run: run ?? 0, evaluate: evaluate ?? 0 };
}
