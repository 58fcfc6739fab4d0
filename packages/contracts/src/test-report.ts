/** What a test-based verifier found, kept as the artifact `tests.json`: shown by the inspector, never read back to make a reward. */
import { z } from "zod";

export const testStatuses = ["passed", "failed", "error", "skipped", "xfail", "missing"] as const;
export type TestStatus = (typeof testStatuses)[number];

export const TestReport = z.object({
  version: z.literal(1),
  /** Whose rules graded: `swe-bench`, `r2e-gym`, `harbor`, … */
  grader: z.string(),
  success: z.boolean(),
  /** How the patch went in; null where grading has none. `by` is the command that took it (`git apply`). */
  patch: z
    .object({ bytes: z.int(), applied: z.boolean(), by: z.string().nullable(), message: z.string().max(4000) })
    .nullable(),
  /** The command, its end and its limit. */
  command: z.object({
    text: z.string().max(4000),
    exitCode: z.int().nullable(),
    timedOut: z.boolean(),
    durationMs: z.number(),
    timeoutMs: z.number(),
  }),
  /** Those that count first; names as the log has them. At most 20,000. */
  tests: z.array(
    z.object({
      name: z.string(),
      status: z.enum(testStatuses),
      /** Which list asks for it; null = it ran and nobody asks. */
      wanted: z.enum(["fail-to-pass", "pass-to-pass"]).nullable(),
      /** It is as the list wants it; null where none does. */
      ok: z.boolean().nullable(),
      message: z.string().max(2000).nullable(),
    }),
  ),
  /** Other numbers of the verifier (keys of a reward file). */
  metrics: z.record(z.string(), z.number()),
  /** As in the Verdict. */
  flags: z.array(z.string()),
  /** Wall-clock of grading's own parts, in order. */
  phases: z.array(z.object({ name: z.string(), durationMs: z.number() })),
});
export type TestReport = z.infer<typeof TestReport>;
