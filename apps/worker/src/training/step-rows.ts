/** The training rows of a step: stored once, by whichever claim of its update came first, and then only read. */
import type { Pool } from "@rolldeck/db/connect";
import type { ClaimedUpdate } from "@rolldeck/db/training/claim-update";
import type { StepRollout } from "@rolldeck/db/training/read-step-rollouts";
import {
  type MaskRun,
  readTrainingRows,
  type StoredTrainingRow,
  type TrainingRow,
  writeTrainingRows,
} from "@rolldeck/db/training/training-rows";
import { buildUpdate, type UpdateGroup, type UpdateRow } from "@rolldeck/rl/build-update";
import { decodeMask } from "@rolldeck/rl/mask-reasons";

/** @throws FencedError when the claim is lost */
export async function stepRows(
  pool: Pool,
  claimed: ClaimedUpdate,
  rollouts: readonly StepRollout[],
): Promise<readonly StoredTrainingRow[]> {
  const { runId, stepId, claim, step, config } = claimed;
  const stored = async () => (await readTrainingRows(pool, runId, step, step)).find((each) => each.stepId === stepId);
  const earlier = await stored();
  if (earlier !== undefined && earlier.rows.length > 0) return earlier.rows;
  const { algorithm, agent } = config;
  const { rows } = buildUpdate({ groups: groupsOf(rollouts), algorithm, maxContextTokens: agent.maxContextTokens });
  await writeTrainingRows(pool, { stepId, claim }, rows.map(trainingRow));
  return (await stored())?.rows ?? [];
}

function groupsOf(rollouts: readonly StepRollout[]): UpdateGroup[] {
  const groups = new Map<string, StepRollout[]>();
  for (const rollout of rollouts) groups.set(rollout.groupId, [...(groups.get(rollout.groupId) ?? []), rollout]);
  return [...groups].map(([groupId, members]) => ({ groupId, rollouts: members }));
}

function trainingRow(row: UpdateRow, index: number): TrainingRow {
  return { ...row, row: index, mask: maskRuns(row.mask) };
}

/** Neighbours with the same reason as one run. */
function maskRuns(encoded: readonly number[]): MaskRun[] {
  const runs: { count: number; reason: MaskRun["reason"] }[] = [];
  for (const reason of decodeMask(encoded)) {
    const last = runs.at(-1);
    if (last?.reason === reason) last.count++;
    else runs.push({ count: 1, reason });
  }
  return runs;
}
