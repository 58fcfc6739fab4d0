/** What was done in a sandbox, in order; artifacts `agent-sandbox.jsonl` and `grade-sandbox.jsonl` hold one a line. */
import { z } from "zod";

export const SandboxLogLine = z.object({
  /** Milliseconds since the sandbox was asked for. */
  atMs: z.number(),
  what: z.enum(["open", "attach", "exec", "spawn", "kill", "read", "write", "put", "get", "close", "note"]),
  /** Command or path, cut. */
  subject: z.string().max(500),
  durationMs: z.number().nullable(),
  exitCode: z.int().nullable(),
  /** Bytes that came out or went in. */
  bytes: z.int().nullable(),
  /** What went wrong, or the end of what a failed command said; null when all was well. */
  trouble: z.string().max(2000).nullable(),
});
export type SandboxLogLine = z.infer<typeof SandboxLogLine>;
