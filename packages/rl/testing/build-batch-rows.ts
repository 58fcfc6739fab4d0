/** Training rows in the neutral form for tests, made from written trajectories by the product's own update. */
import { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import type { Ending } from "@rolldeck/contracts/endings";
import type { Segment } from "@rolldeck/contracts/segments";
import { buildUpdate, type UpdateRow } from "../src/build-update.ts";
import { decodeMask } from "../src/mask-reasons.ts";
import { positionsOf, type TrajectoryTokens } from "../src/trajectory-tokens.ts";
import { buildTrajectory, type WrittenTurn } from "./build-trajectory.ts";

export interface WrittenRollout {
  readonly turns: readonly WrittenTurn[];
  readonly reward: number | null;
  readonly ending?: Ending;
}

type AlgorithmInput = Parameters<typeof AlgorithmConfig.parse>[0];

/** Rows of groups of rollouts; rollout ids are `<group>-<sample>`. */
export function buildBatchRows(
  groups: readonly (readonly WrittenRollout[])[],
  algorithm: AlgorithmInput = {},
  maxContextTokens = 4096,
): BatchRow[] {
  const written = groups.flatMap((rollouts, group) =>
    rollouts.map(({ turns, reward, ending = "answer" }, sample) => ({
      rolloutId: `${group}-${sample}`,
      attempt: 1,
      group,
      sample,
      ending,
      reward,
      trajectory: buildTrajectory(turns),
    })),
  );
  const { rows } = buildUpdate({
    groups: groups.map((_, group) => ({
      groupId: `group-${group}`,
      rollouts: written.filter((rollout) => rollout.group === group),
    })),
    algorithm: AlgorithmConfig.parse(algorithm),
    maxContextTokens,
  });
  return rows.map((row, number) => {
    const rollout = written.find(({ rolloutId }) => rolloutId === row.rolloutId);
    if (rollout === undefined) throw new Error(`no rollout ${row.rolloutId}`);
    const { group, sample, ending, reward, trajectory } = rollout;
    const facts = { row: number, groupId: `group-${group}`, instanceId: `train-${group}`, sample, ending, reward };
    return { ...facts, ...fromUpdate(row, trajectory) };
  });
}

type OfRow = Omit<BatchRow, "row" | "groupId" | "instanceId" | "sample" | "ending" | "reward">;

function fromUpdate(row: UpdateRow, { segments }: TrajectoryTokens): OfRow {
  const tokens = segments.flatMap((segment) =>
    segment.tokens.map((id, place) => ({ id, ...sampledAs(segment, place) })),
  );
  const own = [...positionsOf(row.ranges)].flatMap((position) => tokens[position] ?? []);
  return {
    runId: "run00001",
    step: 1,
    task: "written",
    rolloutId: row.rolloutId,
    attempt: row.attempt,
    advantage: row.advantage,
    scale: row.scale,
    sent: row.sent,
    learnerVersion: 1,
    tokens: own.map(({ id }) => id),
    mask: decodeMask(row.mask).map((reason) => ({ count: 1, reason })),
    samplerLogprobs: own.map(({ logprob }) => logprob),
    trainerLogprobs: null,
    refLogprobs: null,
    tokenWeights: null,
    policyVersions: own.map(({ version }) => version),
  };
}

const sampledAs = ({ logprobs, policyVersion }: Segment, place: number) => {
  const logprob = logprobs?.[place];
  return { logprob: logprob !== undefined && Number.isFinite(logprob) ? logprob : null, version: policyVersion };
};
