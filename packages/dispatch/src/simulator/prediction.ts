/** What a setting is predicted to do. */
import type { Setting } from "./scenario.ts";
import type { Simulation } from "./simulation.ts";
import type { Interval } from "./step-time.ts";

export interface Prediction {
  readonly setting: Setting;
  readonly stepMs: Interval;
  /** Of the step time, relative to the present setting; null for that itself. */
  readonly change: Interval | null;
  /** Of the first seed: for the picture. */
  readonly simulation: Simulation;
}
