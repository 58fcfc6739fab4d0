/** What became of collecting an agent's patch, kept as the artifact `patch-state.json`: graders and the inspector read it. */
import { z } from "zod";

/** Bytes of a patch that is graded and shown. A larger one is told, never cut. */
export const maxPatchBytes = 10 * 1024 * 1024;

export const PatchState = z.object({
  version: z.literal(1),
  /**
   * `no_base`: what it could be compared with is not there any more. `broken`: not even a shell can be started where one could
   * before the agent's turn.
   */
  state: z.enum(["collected", "too_large", "no_base", "broken"]),
  bytes: z.int(),
  /** What git said besides. */
  notes: z.string(),
});
export type PatchState = z.infer<typeof PatchState>;
