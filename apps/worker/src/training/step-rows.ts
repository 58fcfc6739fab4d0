/** The training rows of a step: stored once, by whichever claim of its update came first, and then only read. */
import { noteOnRun } from "@rolldeck/db/runs/note-on-run";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import type { StepRollout } from "@rolldeck/db/training/read-step-rollouts";
import {
  maskRuns,
  readTrainingRows,
  type StoredTrainingRow,
  type TrainingRow,
  writeTrainingRows,
} from "@rolldeck/db/training/training-rows";
import { buildUpdate, type UpdateGroup, type UpdateRow } from "@rolldeck/rl/build-update";
import { klPenalties } from "@rolldeck/rl/kl-penalty";
import { decodeMask } from "@rolldeck/rl/mask-reasons";
import { positionsOf } from "@rolldeck/rl/trajectory-tokens";
import { whyNotUsable } from "@rolldeck/rl/usable-rollouts";
import { type ReferenceScene, referenceLogprobs } from "./reference.ts";

/** @throws FencedError when the claim is lost; BoundaryError when a reference is needed and can't be had */
export async function stepRows(
  { context, signal }: Pick<ReferenceScene, "context" | "signal">,
  claimed: ClaimedUpdate,
  rollouts: readonly StepRollout[],
): Promise<readonly StoredTrainingRow[]> {
  const { runId, stepId, claim, step, config } = claimed;
  const { pool } = context;
  const stored = async () => (await readTrainingRows(pool, runId, step, step)).find((each) => each.stepId === stepId);
  const earlier = await stored();
  if (earlier !== undefined && earlier.rows.length > 0) return earlier.rows;
  const { algorithm, agent } = config;
  const groups = await withPenalties({ context, runId, config, signal }, groupsOf(rollouts));
  const { rows, stats } = buildUpdate({ groups, algorithm, maxContextTokens: agent.maxContextTokens });
  const { written } = await writeTrainingRows(pool, { stepId, claim }, rows.map(trainingRow));
  const message = whyNotUsable(step, stats);
  if (written && message !== null)
    await noteOnRun(pool, runId, [{ level: stats.usableRollouts === 0 ? "warning" : "info", message }]);
  return (await stored())?.rows ?? [];
}

/** What each rollout pays where the run takes its KL off the reward. */
async function withPenalties(scene: ReferenceScene, groups: UpdateGroup[]): Promise<UpdateGroup[]> {
  const { algorithm, agent } = scene.config;
  if (algorithm.kl.coefficient === 0 || algorithm.kl.placement !== "reward") return groups;
  // A first draft says which tokens will be trained; a group that teaches nothing yet may do so once its rollouts have paid.
  const draft = { ...algorithm, filterZeroVariance: false };
  const { rows } = buildUpdate({ groups, algorithm: draft, maxContextTokens: agent.maxContextTokens });
  const trajectories = new Map(
    groups.flatMap(({ rollouts }) => rollouts).map((one) => [one.rolloutId, one.trajectory]),
  );
  const tokensOf = new Map(
    [...trajectories].map(([rolloutId, { segments }]) => [
      rolloutId,
      segments.flatMap(({ tokens, logprobs }) => tokens.map((id, t) => ({ id, logprob: logprobs?.[t] ?? null }))),
    ]),
  );
  const sent = rows
    .filter((row) => row.sent)
    .map(({ rolloutId, ranges, mask }) => {
      const own = [...positionsOf(ranges)].map((position) => tokensOf.get(rolloutId)?.[position]);
      const logprobs = own.map((token) => token?.logprob ?? null);
      return { rolloutId, mask: decodeMask(mask), tokens: own.map((token) => token?.id ?? 0), logprobs };
    });
  const references = await referenceLogprobs(scene, sent);
  const penalties = klPenalties(
    sent.map((row, place) => ({ ...row, refLogprobs: references[place] ?? [] })),
    algorithm.kl,
  );
  return groups.map(({ groupId, rollouts }) => ({
    groupId,
    rollouts: rollouts.map((one) => ({ ...one, penalty: penalties.get(one.rolloutId) ?? 0 })),
  }));
}

function groupsOf(rollouts: readonly StepRollout[]): UpdateGroup[] {
  const groups = new Map<string, StepRollout[]>();
  for (const rollout of rollouts) groups.set(rollout.groupId, [...(groups.get(rollout.groupId) ?? []), rollout]);
  return [...groups].map(([groupId, members]) => ({ groupId, rollouts: members }));
}

function trainingRow(row: UpdateRow, index: number): TrainingRow {
  return { ...row, row: index, mask: maskRuns(row.mask) };
}
