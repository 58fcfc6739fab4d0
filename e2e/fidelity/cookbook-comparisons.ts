/** Ours against the tinker cookbook's making of training data; trajectories as infra/fidelity/cookbook/reference.py makes them. */

import { lossInput } from "@rolldeck/backends/tinker/datums";
import { dialects } from "@rolldeck/backends/tinker/dialects";
import { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";
import { buildUpdate, type UpdateRollout } from "@rolldeck/rl/build-update";
import { exportTinker } from "@rolldeck/rl/export-tinker";
import { buildTrajectory } from "@rolldeck/rl/testing/build-trajectory";
import type { FidelityBatch } from "@rolldeck/rl/testing/fidelity-batches";
import { toDatum } from "@rolldeck/rl/to-datum";
import { batchRows, writtenTurns } from "./batch-rows.ts";
import type { Comparison } from "./comparison.ts";
import { groupRows, rowAdvantages } from "./our-numbers.ts";

const cookbook = (name: string) => ({
  distribution: "tinker-cookbook",
  against: `tinker_cookbook data_processing.${name}`,
});
const rolloutOf = (batch: FidelityBatch, row: number): UpdateRollout => ({
  rolloutId: String(row),
  attempt: 1,
  // A row of which nothing is trained still counts in its group.
  ending: batch.mask[row]?.includes(1) ? "answer" : "turn_limit",
  reward: batch.rewards[row] ?? null,
  trajectory: buildTrajectory(writtenTurns(batch, row)),
});

/** The step's datums in order, each with its group and its place there; `scale` is the backend's and is left at 1. */
function datums(batch: FidelityBatch, advantages: readonly number[] | null) {
  const groups = groupRows(batch);
  const rollouts = new Map(batch.rewards.map((_, row) => [String(row), rolloutOf(batch, row)]));
  const { rows } = buildUpdate({
    groups: groups.map((members, group) => ({
      groupId: String(group),
      rollouts: members.flatMap((row) => rollouts.get(String(row)) ?? []),
    })),
    algorithm: AlgorithmConfig.parse({ advantage: "dr-grpo", filterZeroVariance: false }),
    maxContextTokens: 4096,
  });
  return rows.flatMap((row) => {
    const trajectory = rollouts.get(row.rolloutId)?.trajectory;
    if (trajectory === undefined) return [];
    const index = Number(row.rolloutId);
    const advantage = advantages === null ? row.advantage : (advantages[index] ?? Number.NaN);
    const datum = toDatum({ ...row, advantage, scale: 1 }, trajectory);
    const group = groups.findIndex((members) => members.includes(index));
    const place = [group, groups[group]?.indexOf(index) ?? -1];
    return [{ arrays: [datum.inputs, datum.targets, datum.logprobs, datum.advantages, datum.weights], place }];
  });
}

/** What a step sends for the batch, its losses' scale left out. */
const sentDatums = (batch: FidelityBatch) => batchRows(batch).map((row) => exportTinker({ ...row, scale: 1 }));

/** The JSON that goes over the wire to a hosted server, parsed. */
export const cookbookExport = (batch: FidelityBatch): unknown =>
  JSON.parse(lossInput(sentDatums(batch), { name: "ppo", config: {} }, dialects.hosted)).data;

const masking = "log-probs of masked tokens are 0.0 in ours and left out of the comparison";

export const cookbookComparisons: readonly Comparison[] = [
  {
    op: "compute_advantages",
    what: "advantage dr-grpo",
    ...cookbook("compute_advantages"),
    ours: (batch) => ({ advantages: rowAdvantages(batch, "dr-grpo") }),
  },
  {
    op: "trajectory_to_data",
    what: "datums of a trajectory",
    given: masking,
    ...cookbook("trajectory_to_data"),
    ours: (batch) => ({ values: datums(batch, batch.advantages).map(({ arrays }) => arrays) }),
  },
  {
    op: "assemble_training_data",
    what: "training data of a step",
    given: masking,
    ...cookbook("assemble_training_data"),
    ours: (batch) => ({ values: datums(batch, null).map(({ arrays, place }) => [...arrays, place]) }),
  },
  {
    op: "export/datums",
    what: "exported rows as datums",
    distribution: "tinker",
    against: "tinker.Datum",
    ours: (batch) => ({
      values: sentDatums(batch).map(({ inputs, targets, logprobs, advantages }) => [
        inputs,
        targets,
        logprobs,
        advantages,
      ]),
    }),
  },
];
