/** What goes into and comes out of the thread that simulates. */
import { PredictedRun } from "@rolldeck/contracts/api/predictions";
import { SimulationResult } from "@rolldeck/contracts/api/simulations";
import type { OverlapEstimate } from "@rolldeck/dispatch/simulator/overlap-estimate";
import type { RunScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import { z } from "zod";

export interface SimulationTask {
  readonly run: RunScenario;
  readonly dispatchers: readonly string[] | null;
  readonly seeds: number;
  readonly actualStepMs: number | null;
  readonly steps: number;
}

/** What `async` is worth against `pipeline`. */
export interface OverlapTask {
  readonly overlap: RunScenario;
  readonly seeds: number;
}
export type ThreadTask = SimulationTask | OverlapTask | PredictionTask;

const Overlap = z.object({
  basis: z.enum(["recorded", "assumed"]),
  rollouts: z.int(),
  asyncMs: z.number(),
  pipelineMs: z.number(),
  change: z.object({ mean: z.number(), low: z.number(), high: z.number() }),
}) satisfies z.ZodType<OverlapEstimate>;

/** One run as it is, in place of many settings of it. */
export interface PredictionTask {
  readonly run: RunScenario;
  readonly seeds: number;
  /** That the run is to take. */
  readonly stepsToTake: number;
}

/** The one message of a task that is not a simulation. */
export const AnswerFromThread = z.union([
  z.object({ predicted: PredictedRun }),
  z.object({ overlap: Overlap }),
  z.object({ failed: z.string() }),
]);
export type AnswerFromThread = z.infer<typeof AnswerFromThread>;

export const FromThread = z.union([
  z.object({ played: z.int() }),
  z.object({ result: SimulationResult }),
  z.object({ failed: z.string() }),
]);
export type FromThread = z.infer<typeof FromThread>;
