/**
 * Evaluate stage: the verifier turns a finished rollout into a reward. Invariant: a reward is a number that the verifier gave;
 * an error of the verifier, or a number that is not finite, is an evaluate failure, never a 0.
 */

import type { Trajectory } from "@rolldeck/agent/core/trajectory";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StageJob } from "@rolldeck/contracts/jobs";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { FinishedRollout, GradingScene, Task, TaskInstance, Verdict } from "@rolldeck/contracts/ports/task";
import type { ClaimedStage } from "@rolldeck/db/hot/claim-stage";
import { readTrajectory } from "@rolldeck/db/hot/read-trajectory";
import { addJudgeTokens } from "@rolldeck/db/runs/add-judge-tokens";
import { CountedJudge } from "../counted-judge.ts";
import { readVerdict } from "../read-verdict.ts";
import { taskOf } from "../rollout-task.ts";
import { type AgentOf, keepAfterGrading } from "../sandboxes/agent-stage.ts";
import { type Grading, SandboxesOfGrading } from "../sandboxes/grading-sandboxes.ts";
import { stageJob } from "../stage-job.ts";
import type { WorkerContext } from "../worker-context.ts";

export function evaluateStage(context: WorkerContext, job: StageJob): Promise<void> {
  return stageJob(context, job, async (claimed, signal) => {
    const { task, instance } = await taskOf(context.openedTasks, claimed);
    const trajectory = await readTrajectory(context.pool, job.rolloutId, job.attempt);
    const { ending, rollout } = finishedRollout(claimed, trajectory);
    const of = { ...claimed, rolloutId: job.rolloutId, turns: trajectory.turns.length };
    const judge = context.judge && new CountedJudge(context.judge);
    const verdict = await inSandboxes(context, { of, task, instance, signal }, (sandboxes) =>
      grade(task, instance, rollout, { signal, judge, ...(sandboxes && { sandboxes }) }),
    ).finally(() => keepJudgeTokens(context, claimed.runId, judge?.tokens ?? 0));
    return {
      move: "settle",
      outcome: "completed",
      ending,
      reason: whyItEnded(claimed.runReason, verdict.notes),
      reward: verdict.reward,
      rewardParts: verdict.parts,
      success: verdict.success,
      ...(verdict.flags && { flags: verdict.flags }),
    };
  });
}

/** What a judge has read and written is paid for, whatever came of the grading. */
async function keepJudgeTokens(context: WorkerContext, runId: string, tokens: number): Promise<void> {
  if (tokens === 0) return;
  // A count that can't be kept must not cost a reward.
  await addJudgeTokens(context.pool, runId, tokens).catch((trouble: unknown) =>
    context.log.warn({ err: trouble, runId, tokens }, "a judge's tokens were not counted"),
  );
}

/** The verifier's sandboxes end with the grading, whatever came of it. */
async function inSandboxes(
  context: WorkerContext,
  agent: AgentOf & Pick<Grading, "of" | "signal">,
  work: (sandboxes: SandboxesOfGrading | null) => Promise<Verdict>,
): Promise<Verdict> {
  if (agent.task.sandbox === "none") return work(null);
  const sandboxes = new SandboxesOfGrading({ ...agent, pool: context.pool, sandboxes: context.sandboxes });
  const startedAt = performance.now();
  let verdict: Verdict;
  try {
    verdict = await work(sandboxes);
  } catch (error) {
    // What the verifier died of comes first: a log that can't be kept either is only said.
    await sandboxes
      .end(performance.now() - startedAt)
      .catch((trouble: unknown) => context.log.debug({ err: trouble }, "the log of a grading was not kept"));
    // What could not be graded is what people want to look into.
    await keepAfterGrading(context, agent, false).catch((trouble: unknown) =>
      context.log.debug({ err: trouble }, "a sandbox was not kept"),
    );
    throw error;
  }
  await sandboxes.end(performance.now() - startedAt);
  await keepAfterGrading(context, agent, verdict.success);
  return verdict;
}

/** Why the run stage ended comes first: the verifier's words don't replace it. */
const whyItEnded = (runReason: string | null, notes: string | null): string | null =>
  [runReason, notes]
    .filter((words) => words !== null && words !== "")
    .join("; ")
    .slice(0, 480) || null;

/** What the run stage left, as rows tell it. */
export function finishedRollout(
  claimed: Pick<ClaimedStage, "ending" | "finalAnswer">,
  trajectory: Trajectory,
): { readonly ending: FinishedRollout["ending"]; readonly rollout: FinishedRollout } {
  if (claimed.ending === null) {
    throw new BoundaryError("infrastructure", "no_ending", "the rollout came to grading without an ending");
  }
  const toolCalls = trajectory.turns.flatMap((turn) =>
    turn.calls.map((call) => ({
      name: call.name,
      arguments: call.arguments,
      failed: turn.results.find((result) => result?.index === call.index)?.error != null,
    })),
  );
  const { ending, finalAnswer } = claimed;
  return { ending, rollout: { ending, finalAnswer, turns: trajectory.turns.length, toolCalls } };
}

async function grade(
  task: Task,
  instance: TaskInstance,
  rollout: FinishedRollout,
  scene: GradingScene,
): Promise<Verdict> {
  return readVerdict(await orAborted(boundary(task, instance, rollout, scene), scene.signal), task.name);
}

async function boundary(
  task: Task,
  instance: TaskInstance,
  rollout: FinishedRollout,
  scene: GradingScene,
): Promise<Verdict> {
  try {
    return await task.verify(instance, rollout, scene);
  } catch (cause) {
    if (cause instanceof BoundaryError) throw cause;
    throw new BoundaryError("verifier", "threw", `the verifier of ${task.name} failed: ${String(cause)}`, { cause });
  }
}
