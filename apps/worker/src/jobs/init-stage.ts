/** Init stage: everything a rollout needs before its first model call: a valid instance and, where its task has one, its sandbox. */
import type { StageJob } from "@rolldeck/contracts/jobs";
import { taskOf } from "../rollout-task.ts";
import { openForAgent } from "../sandboxes/agent-stage.ts";
import { stageJob } from "../stage-job.ts";
import type { WorkerContext } from "../worker-context.ts";

export function initStage(context: WorkerContext, job: StageJob): Promise<void> {
  return stageJob(context, job, async (claimed, signal) => {
    const { task, instance } = await taskOf(context.openedTasks, claimed);
    if (task.sandbox !== "none") {
      const of = { ...claimed, rolloutId: job.rolloutId };
      await openForAgent(context, { of, task, instance }, signal);
    }
    return { move: "next-stage", stage: "run" };
  });
}
