/** Checkpoints that are served: an OpenAI-compatible endpoint with a key of its own, for as long as somebody wants it. */
import { z } from "zod";

export const ServingId = z.string().regex(/^[0-9a-z]{8,40}$/, "a serving id is 8 to 40 lower-case letters and digits");
export const ServingRef = z.strictObject({ servingId: ServingId });
/** Where a serving answers, under the server's own address; clients take it as their base URL. */
export const servingPath = (servingId: string): string => `/api/serve/${servingId}/v1`;

export const Serving = z.object({
  servingId: z.string(),
  /** Of the checkpoint. */
  checkpoint: z.string(),
  runId: z.string(),
  runName: z.string(),
  version: z.int(),
  /** Base URL without the server's own address. */
  path: z.string(),
  startedBy: z.string(),
  startedAt: z.string(),
  /** To the minute; null = never. */
  lastUsedAt: z.string().nullable(),
});
export type Serving = z.infer<typeof Serving>;
/** Those that answer, newest first. */
export const Servings = z.array(Serving);
/** The key is shown once. */
export const StartedServing = Serving.extend({ key: z.string() });
export type StartedServing = z.infer<typeof StartedServing>;
