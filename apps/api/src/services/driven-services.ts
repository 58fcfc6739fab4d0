/** Driven runs: an outside trainer asks for batches, takes finished rollouts back by cursor, and says it lives. */
import type { FinishedRolloutRow } from "@rolldeck/contracts/api/rollouts";
import { InputError, type InputIssue, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { requestBatch } from "@rolldeck/db/driven/batch-requests";
import { type FinishedPage, readFinishedRollouts } from "@rolldeck/db/driven/finished-rollouts";
import { readLaunchedTrainer } from "@rolldeck/db/driven/trainer-jobs";
import { renewTrainerLease } from "@rolldeck/db/driven/trainer-lease";
import { readRunConfig } from "@rolldeck/db/reads/read-run-config";
import { readRunStatus } from "@rolldeck/db/reads/read-run-status";
import { rolloutMask, rowMask } from "@rolldeck/rl/mask-reasons";
import { packTrajectory } from "@rolldeck/rl/pack-trajectory";
import { allTokens, positionsOf } from "@rolldeck/rl/trajectory-tokens";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import type { Pool } from "pg";
import type { z } from "zod";
import type { DrivenServices } from "../services.ts";

export interface DrivenServiceOptions {
  readonly pool: Pool;
  readonly wake: (runId: string) => Promise<void>;
  readonly tasks: Pick<OpenedTasks, "of">;
}

export function createDrivenServices({ pool, wake, tasks }: DrivenServiceOptions): DrivenServices {
  return {
    async requestBatch({ deadlineMs, ...request }) {
      const config = await readRunConfig(pool, request.runId);
      if (!config) throw new NotFoundError("run", request.runId);
      refuseLaterStep(request.trainerStep, config);
      await refuseUnknownInstances(request.instances, config, tasks);
      const reply = await requestBatch(pool, { ...request, deadlineMs: deadlineMs ?? null });
      await wake(request.runId);
      return reply;
    },
    async readBatch(input) {
      const page = await readFinishedRollouts(pool, input);
      return { ...page, rollouts: page.rollouts.map(trainingRows) };
    },
    async heartbeat({ runId, leaseMs, policyVersion }) {
      await renewTrainerLease(pool, { runId, leaseMs, policyVersion });
      const status = await readRunStatus(pool, runId);
      if (status === null) throw new NotFoundError("run", runId);
      return { runId, status };
    },
    async trainer({ runId }) {
      if ((await readRunStatus(pool, runId)) === null) throw new NotFoundError("run", runId);
      return readLaunchedTrainer(pool, runId);
    },
  };
}

/** A step past the last would end the run in front of those that are still to come. @throws InputError */
function refuseLaterStep(trainerStep: number, { budget: { steps } }: RunConfig): void {
  if (trainerStep <= steps) return;
  throw new InputError([
    {
      path: "trainerStep",
      message: `the run is over after step ${steps}`,
      fix: "launch it with budget.steps as high as the trainer goes",
    },
  ]);
}

/** What the planner could never make a rollout of is refused before it is written. @throws InputError */
async function refuseUnknownInstances(
  instances: readonly { readonly taskSet: number; readonly index: number }[],
  config: RunConfig,
  tasks: Pick<OpenedTasks, "of">,
): Promise<void> {
  const issues: InputIssue[] = [];
  for (const [at, { taskSet, index }] of instances.entries()) {
    const set = config.taskSets[taskSet];
    if (!set) {
      issues.push({ path: `instances[${at}].taskSet`, message: `the run has ${config.taskSets.length} task sets` });
      continue;
    }
    const own = (await tasks.of(config, taskSet)).size("train");
    const size = Math.min(set.size ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
    if (index >= size) issues.push({ path: `instances[${at}].index`, message: `${set.name} has ${size} instances` });
  }
  if (issues.length > 0) throw new InputError(issues.slice(0, 50));
}

/** Whole sequences with masks: the outside trainer computes advantages by its own algorithm, so none travel. */
function trainingRows(rollout: FinishedPage["rollouts"][number]): z.output<typeof FinishedRolloutRow> {
  const { trajectory, rolloutId, taskSet, instanceIndex, instanceId, sample, outcome, ending, reward } = rollout;
  const tokens = allTokens(trajectory.segments);
  const logprobs = trajectory.segments.flatMap((segment): (number | null)[] =>
    segment.tokens.map((_, at) => segment.logprobs?.[at] ?? null),
  );
  // What is cut is the trainer's to decide: it gets the ending with every rollout.
  const whole = rolloutMask({ ending, reward }, true);
  const rows = packTrajectory(trajectory).rows.map((row) => {
    const positions = [...positionsOf(row.ranges)];
    return {
      tokens: positions.map((at) => tokens[at] ?? 0),
      mask: rowMask(row, trajectory, whole).map((reason) => (reason === null ? 1 : 0)),
      logprobs: positions.map((at) => logprobs[at] ?? null),
    };
  });
  return { rolloutId, taskSet, index: instanceIndex, instanceId, sample, outcome, ending, reward, rows };
}
