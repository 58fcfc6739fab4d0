/** A named starting point of the new-run form: a RunConfig input, so that defaults stay in one place. */
import type { RunConfigInput } from "./run-config.ts";

export interface Preset {
  readonly title: string;
  readonly summary: string;
  readonly config: RunConfigInput;
}
