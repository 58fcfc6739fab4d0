/**
 * Settled groups → the rows of one optimizer update. Advantages, masks and weights are decided here, once, and travel as
 * numbers: the trainer knows no algorithm's name.
 *
 * Invariants:
 * - the group key is the caller's (one task instance at one step); a rollout counts once in it, however many rows it has;
 * - only scored rollouts enter statistics and denominators; an unscored one neither becomes a 0 nor touches its siblings;
 * - the scale of a row never depends on how its trajectory was split into rows;
 * - every row that is not trained says why, per token.
 */
import type { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";
import { type Ending, endingRule, type MaskReason } from "@rolldeck/contracts/endings";
import type { TokenRange } from "@rolldeck/contracts/segments";
import { batchAdvantages } from "./batch-advantages.ts";
import { lossScales } from "./denominators.ts";
import { isScored, isZeroVariance } from "./group-advantages.ts";
import { encodeMask, rolloutMask, rowMask, type TokenMask } from "./mask-reasons.ts";
import { type PackedRow, packTrajectory } from "./pack-trajectory.ts";
import { rangesLength, type TrajectoryTokens } from "./trajectory-tokens.ts";

export interface UpdateRollout {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly ending: Ending;
  /** Null: never scored. */
  readonly reward: number | null;
  /** Taken off the reward before advantages (KL in the reward); the reward itself stays what the verifier said. */
  readonly penalty?: number;
  readonly trajectory: TrajectoryTokens;
}
export interface UpdateGroup {
  readonly groupId: string;
  readonly rollouts: readonly UpdateRollout[];
}
export interface UpdateInput {
  readonly groups: readonly UpdateGroup[];
  readonly algorithm: AlgorithmConfig;
  /** Longest row that may be trained, and L of the constant normaliser unless `normaliserTokens` says otherwise. */
  readonly maxContextTokens: number;
}

/** One training row as stored (table training_rows). */
export interface UpdateRow {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly ranges: readonly TokenRange[];
  /** Run-length list of `encodeMask`. */
  readonly mask: readonly number[];
  /** 0 when the rollout has none. */
  readonly advantage: number;
  /** What the advantage of every trained token is multiplied by: 1 ÷ denominator. */
  readonly scale: number;
  /** False: counted, but no forward pass (zero variance, fully masked). */
  readonly sent: boolean;
}
export interface UpdateStats {
  readonly groups: number;
  /** Groups whose scored rewards are all equal. */
  readonly zeroVarianceGroups: number;
  /** Groups without a scored rollout, or dropped by the group policy: they give no rows. */
  readonly droppedGroups: number;
  readonly rollouts: number;
  readonly scoredRollouts: number;
  readonly rows: number;
  readonly sentRows: number;
  /** Turns whose prompt did not continue the turn before. */
  readonly breaks: number;
  readonly sampledTokens: number;
  readonly trainedTokens: number;
  /** Tokens by the reason they are not trained. */
  readonly maskedTokens: Readonly<Partial<Record<MaskReason, number>>>;
  /** Rollouts of which at least one token is trained. */
  readonly usableRollouts: number;
  /** Rollouts of groups that are dropped. */
  readonly droppedRollouts: number;
  /** Rollouts with rows of which no token is trained, by reason. */
  readonly untrainedRollouts: Readonly<Partial<Record<MaskReason, number>>>;
}

interface Draft {
  readonly rollout: UpdateRollout;
  readonly row: PackedRow;
  readonly mask: readonly TokenMask[];
  readonly advantage: number | null;
  /** Its whole group's advantages are exactly 0: nothing to learn, and nothing to compute. */
  readonly idle: boolean;
}

/** Rows in the order of groups, rollouts and turns. @throws RangeError when a trajectory is corrupt */
export function buildUpdate(input: UpdateInput): { rows: UpdateRow[]; stats: UpdateStats } {
  const groups = input.groups.map((group) => scoreGroup(group, input.algorithm));
  const drafts = members(groups, input.algorithm).map((member) => draftRollout(member, input));
  const scored = drafts.filter((rollout) => rollout.advantage !== null);
  const scales = lossScales(
    scored.map(({ group, rows }) => ({
      group,
      trainedTokens: rows.reduce((sum, draft) => sum + countTrained(draft.mask), 0),
    })),
    input.algorithm.normalisation,
    input.algorithm.normaliserTokens ?? input.maxContextTokens,
  );
  const scaleOf = new Map(scored.map((rollout, index) => [rollout, scales[index] ?? 0]));
  const filter = input.algorithm.filterZeroVariance;
  const finished = drafts.flatMap((rollout) =>
    rollout.rows.map((draft) => finishRow(draft, scaleOf.get(rollout) ?? 0, filter)),
  );
  const rows = finished.map(({ row }) => row);
  return {
    rows,
    stats: {
      groups: groups.length,
      zeroVarianceGroups: groups.filter((group) => group.zeroVariance).length,
      droppedGroups: groups.filter((group) => group.dropped).length,
      rollouts: groups.reduce((sum, { rewards }) => sum + rewards.length, 0),
      scoredRollouts: groups.reduce((sum, { rewards }) => sum + rewards.filter(isScored).length, 0),
      rows: rows.length,
      sentRows: rows.filter((row) => row.sent).length,
      breaks: drafts.reduce((sum, rollout) => sum + rollout.breaks, 0),
      ...countTokens(finished.map(({ mask }) => mask)),
      ...countUntrained(finished),
      droppedRollouts: groups.reduce((sum, { dropped, rollouts }) => sum + (dropped ? rollouts.length : 0), 0),
      sampledTokens: drafts.reduce(
        (sum, { rows: own }) => sum + own.reduce((n, d) => n + rangesLength(d.row.sampled), 0),
        0,
      ),
    },
  };
}

interface ScoredGroup {
  readonly rollouts: readonly UpdateRollout[];
  /** Null where a rollout has left the group. */
  readonly rewards: readonly (number | null)[];
  readonly zeroVariance: boolean;
  readonly dropped: boolean;
}
interface Member {
  readonly rollout: UpdateRollout;
  readonly group: number;
  readonly advantage: number | null;
  readonly idle: boolean;
}

function scoreGroup({ rollouts }: UpdateGroup, algorithm: AlgorithmConfig): ScoredGroup {
  // An ending outside the baseline has left the group, whatever number stands in its row.
  const rewards = rollouts.map(({ ending, reward }) => (endingRule(ending).inBaseline ? reward : null));
  const unscored = rewards.filter((reward) => !isScored(reward)).length;
  return {
    rollouts,
    rewards,
    zeroVariance: isZeroVariance(rewards),
    // "wait" has waited already when the update is built: what is still unscored shrinks the group.
    dropped: unscored === rewards.length || (algorithm.groupPolicy === "drop-group" && unscored > 0),
  };
}

/** The rollouts of the groups that are kept, with their advantages. @throws RangeError when one is not finite */
function members(groups: readonly ScoredGroup[], algorithm: AlgorithmConfig): Member[] {
  const kept = groups.filter((group) => !group.dropped);
  const advantages = batchAdvantages(
    kept.map(({ rollouts, rewards }) => ({
      rewards: rewards.map((reward, place) => (isScored(reward) ? reward - (rollouts[place]?.penalty ?? 0) : null)),
      sampledTokens: rollouts.map(({ trajectory }) => sampledTokens(trajectory)),
    })),
    algorithm,
  );
  return kept.flatMap(({ rollouts }, group) => {
    const own = advantages[group] ?? [];
    const idle = own.every((advantage) => advantage === null || advantage === 0);
    return rollouts.map((rollout, place): Member => ({ rollout, group, idle, advantage: own[place] ?? null }));
  });
}

/** Each sampled token once, however many rows it stands in. */
const sampledTokens = ({ segments }: TrajectoryTokens): number =>
  segments.reduce((sum, { origin, tokens }) => sum + (origin === "sampled" ? tokens.length : 0), 0);

function draftRollout(member: Member, { algorithm, maxContextTokens }: UpdateInput) {
  const { rollout, group, advantage, idle } = member;
  const { rows, breaks } = packTrajectory(rollout.trajectory);
  const whole = rolloutMask(rollout, algorithm.trainCut);
  return {
    group,
    advantage,
    breaks,
    rows: rows.map((row): Draft => {
      const overLength = rangesLength(row.ranges) > maxContextTokens ? "over-length" : null;
      return { rollout, row, advantage, idle, mask: rowMask(row, rollout.trajectory, whole ?? overLength) };
    }),
  };
}

const countTrained = (mask: readonly TokenMask[]): number => mask.filter((reason) => reason === null).length;

function finishRow(
  draft: Draft,
  scale: number,
  filterZeroVariance: boolean,
): { row: UpdateRow; mask: readonly TokenMask[] } {
  const skipped = draft.idle && filterZeroVariance;
  const mask = skipped ? draft.mask.map((reason): TokenMask => reason ?? "zero-variance") : draft.mask;
  const { rolloutId, attempt } = draft.rollout;
  return {
    mask,
    row: {
      rolloutId,
      attempt,
      ranges: draft.row.ranges,
      mask: encodeMask(mask),
      advantage: draft.advantage ?? 0,
      scale,
      sent: mask.includes(null),
    },
  };
}

function countTokens(masks: readonly (readonly TokenMask[])[]) {
  const maskedTokens: Partial<Record<MaskReason, number>> = {};
  let trainedTokens = 0;
  for (const reason of masks.flat()) {
    if (reason === null) trainedTokens += 1;
    else maskedTokens[reason] = (maskedTokens[reason] ?? 0) + 1;
  }
  return { trainedTokens, maskedTokens };
}

/** The reason shown for a rollout is that of its last sampled token; context and template are never a reason by themselves. */
function countUntrained(finished: readonly { row: UpdateRow; mask: readonly TokenMask[] }[]) {
  const reasons = new Map<string, MaskReason | null>();
  for (const { row, mask } of finished) {
    const trained = mask.includes(null) || reasons.get(row.rolloutId) === null;
    // A row ends with the tokens it was made for.
    reasons.set(row.rolloutId, trained ? null : (mask.at(-1) ?? null));
  }
  const untrainedRollouts: Partial<Record<MaskReason, number>> = {};
  let usableRollouts = 0;
  for (const reason of reasons.values()) {
    if (reason === null) usableRollouts += 1;
    else untrainedRollouts[reason] = (untrainedRollouts[reason] ?? 0) + 1;
  }
  return { usableRollouts, untrainedRollouts };
}
