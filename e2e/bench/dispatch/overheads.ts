/**
 * What the live engine adds, measured on one run of another seed: the simulator is told these numbers, and nothing of the runs that
 * it then predicts.
 */
import { noOverheads, type Overheads } from "@rolldeck/dispatch/simulator/simulation-input";
import type { Workload } from "@rolldeck/dispatch/testing/paper-workload";
import type { LiveSpan } from "./live-run.ts";

/** Between two plans of one burst, as the worker's reconciler has it. */
const roundMs = 50;

/**
 * @param spans of a `bounded` run: there a rollout's run and evaluate stages have their slots as soon as they are ready
 * @param planMs mean of the run's plans, from reading the rows to enqueued jobs
 */
export function measureOverheads(workload: Workload, spans: readonly LiveSpan[], planMs: number): Overheads {
  const toStart = spans.filter(({ stage }) => stage !== "init").map(({ readyAt, startedAt }) => startedAt - readyAt);
  const around = spans.map((span) => span.endedAt - span.startedAt - workMs(workload, span));
  // A change waits for half a round on average; what is neither that nor the plan is the job's way to the worker.
  const deliveryMs = Math.max(0, mean(toStart) - planMs - roundMs / 2);
  return { ...noOverheads, planMs, roundMs, deliveryMs, stageEndMs: Math.max(0, mean(around)) };
}

function workMs(workload: Workload, { step, instanceIndex, sample, attempt, stage }: LiveSpan): number {
  const instance = { taskSet: 0, split: "train", instanceIndex } as const;
  const work = workload.work({ instance, visit: step - 1, sample, attempt });
  return { init: work.initMs, run: work.runMs, evaluate: work.evaluateMs }[stage];
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
