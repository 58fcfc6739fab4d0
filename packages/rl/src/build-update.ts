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
import { type Ending, endingRule, type MaskReason } from "@rolldeck/contracts/endings";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { TokenRange } from "@rolldeck/contracts/segments";
import { lossScales } from "./denominators.ts";
import { groupAdvantages, isScored, isZeroVariance } from "./group-advantages.ts";
import { encodeMask, rolloutMask, rowMask, type TokenMask } from "./mask-reasons.ts";
import { type PackedRow, packTrajectory } from "./pack-trajectory.ts";
import { rangesLength, type TrajectoryTokens } from "./trajectory-tokens.ts";

export interface UpdateRollout {
  readonly rolloutId: string;
  readonly attempt: number;
  readonly ending: Ending;
  /** Null: never scored. */
  readonly reward: number | null;
  readonly trajectory: TrajectoryTokens;
}
export interface UpdateGroup {
  readonly groupId: string;
  readonly rollouts: readonly UpdateRollout[];
}
export interface UpdateInput {
  readonly groups: readonly UpdateGroup[];
  readonly algorithm: RunConfig["algorithm"];
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
  /** Rollouts with rows of which no token is trained, by reason. */
  readonly untrainedRollouts: Readonly<Partial<Record<MaskReason, number>>>;
}

interface Draft {
  readonly rollout: UpdateRollout;
  readonly row: PackedRow;
  readonly mask: readonly TokenMask[];
  readonly advantage: number | null;
  readonly zeroVariance: boolean;
}

/** Rows in the order of groups, rollouts and turns. @throws RangeError when a trajectory is corrupt */
export function buildUpdate(input: UpdateInput): { rows: UpdateRow[]; stats: UpdateStats } {
  const groups = input.groups.map((group) => scoreGroup(group, input.algorithm));
  const drafts = groups
    .flatMap((group) => (group.dropped ? [] : group.members))
    .map((member) => draftRollout(member, input));
  const scored = drafts.filter((rollout) => rollout.advantage !== null);
  const scales = lossScales(
    scored.map(({ rows }) => ({ trainedTokens: rows.reduce((sum, draft) => sum + countTrained(draft.mask), 0) })),
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
      rollouts: groups.reduce((sum, group) => sum + group.members.length, 0),
      scoredRollouts: groups.reduce((sum, { members }) => sum + members.filter((m) => m.advantage !== null).length, 0),
      rows: rows.length,
      sentRows: rows.filter((row) => row.sent).length,
      breaks: drafts.reduce((sum, rollout) => sum + rollout.breaks, 0),
      ...countTokens(finished.map(({ mask }) => mask)),
      untrainedRollouts: countUntrained(finished),
      sampledTokens: drafts.reduce(
        (sum, { rows: own }) => sum + own.reduce((n, d) => n + rangesLength(d.row.sampled), 0),
        0,
      ),
    },
  };
}

interface Member {
  readonly rollout: UpdateRollout;
  readonly advantage: number | null;
  readonly zeroVariance: boolean;
}

function scoreGroup(group: UpdateGroup, algorithm: RunConfig["algorithm"]) {
  // An ending outside the baseline has left the group, whatever number stands in its row.
  const rewards = group.rollouts.map(({ ending, reward }) => (endingRule(ending).inBaseline ? reward : null));
  const advantages = groupAdvantages(rewards, algorithm.advantage);
  const unscored = rewards.filter((reward) => !isScored(reward)).length;
  const zeroVariance = isZeroVariance(rewards);
  return {
    zeroVariance,
    // "wait" has waited already when the update is built: what is still unscored shrinks the group.
    dropped: unscored === rewards.length || (algorithm.groupPolicy === "drop-group" && unscored > 0),
    members: group.rollouts.map(
      (rollout, index): Member => ({ rollout, zeroVariance, advantage: advantages[index] ?? null }),
    ),
  };
}

function draftRollout(member: Member, { algorithm, maxContextTokens }: UpdateInput) {
  const { rollout, advantage, zeroVariance } = member;
  const { rows, breaks } = packTrajectory(rollout.trajectory);
  const whole = rolloutMask(rollout, algorithm.trainCut);
  return {
    advantage,
    breaks,
    rows: rows.map((row): Draft => {
      const overLength = rangesLength(row.ranges) > maxContextTokens ? "over-length" : null;
      return { rollout, row, advantage, zeroVariance, mask: rowMask(row, rollout.trajectory, whole ?? overLength) };
    }),
  };
}

const countTrained = (mask: readonly TokenMask[]): number => mask.filter((reason) => reason === null).length;

function finishRow(
  draft: Draft,
  scale: number,
  filterZeroVariance: boolean,
): { row: UpdateRow; mask: readonly TokenMask[] } {
  const skipped = draft.zeroVariance && filterZeroVariance;
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
  const counts: Partial<Record<MaskReason, number>> = {};
  for (const reason of reasons.values()) if (reason !== null) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}
