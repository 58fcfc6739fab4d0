/** Init stage: everything a rollout needs before its first model call. With `sandbox: none` that is a valid instance. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StageJob } from "@rolldeck/contracts/jobs";
import { taskOf } from "../rollout-task.ts";
import { stageJob } from "../stage-job.ts";
import type { WorkerContext } from "../worker-context.ts";

export function initStage(context: WorkerContext, job: StageJob): Promise<void> {
  return stageJob(context, job, async (claimed) => {
    const { task } = await taskOf(context.openedTasks, claimed);
    if (task.sandbox !== "none") {
      throw new BoundaryError(
        "sandbox",
        "no_runtime",
        `task ${task.name} needs a ${task.sandbox} sandbox; none is here`,
      );
    }
    return { move: "next-stage", stage: "run" };
  });
}
