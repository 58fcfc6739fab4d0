/** RFC 9457 problem documents. `type` is a stable URN; `errors[].path` names the field. */
import { z } from "zod";

export const problemTypes = {
  "bad-input": 400,
  "bad-json": 400,
  "not-signed-in": 401,
  "not-allowed": 403,
  "foreign-origin": 403,
  "not-found": 404,
  "bad-method": 405,
  conflict: 409,
  "fleet-worker-needed": 409,
  "idempotency-mismatch": 422,
  "idempotency-in-flight": 409,
  "too-large": 413,
  "bad-media-type": 415,
  "too-many": 429,
  internal: 500,
  unavailable: 503,
} as const;
export type ProblemType = keyof typeof problemTypes;

export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  requestId: z.string(),
  errors: z.array(z.object({ path: z.string(), message: z.string(), fix: z.string().optional() })).optional(),
});
export type Problem = z.infer<typeof Problem>;
export const problemUrn = (type: ProblemType): string => `urn:rolldeck:problem:${type}`;
