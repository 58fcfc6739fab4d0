/** What goes into and comes out of the thread that simulates. */
import { SimulationResult } from "@rolldeck/contracts/api/simulations";
import type { RunScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import { z } from "zod";

export interface SimulationTask {
  readonly run: RunScenario;
  readonly dispatchers: readonly string[] | null;
  readonly seeds: number;
  readonly actualStepMs: number | null;
  readonly steps: number;
}

export const FromThread = z.union([
  z.object({ played: z.int() }),
  z.object({ result: SimulationResult }),
  z.object({ failed: z.string() }),
]);
export type FromThread = z.infer<typeof FromThread>;
