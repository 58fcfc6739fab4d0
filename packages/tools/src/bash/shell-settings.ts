/** How an instance wants its shell: `shell` of its state, which is no argument of the model's. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";

const Settings = z.strictObject({
  /** Every command starts as the first one did: nothing is kept between them but files. */
  stateless: z.boolean().default(false),
  /** Of a command that names no limit itself. */
  timeoutMs: z.int().min(100).max(3_600_000).default(120_000),
  /** Kept of a command's output, half of it for each end. */
  maxOutputBytes: z.int().min(64).max(16_777_216).default(1_048_576),
  /** Without new output for this long, `execute_bash` comes back and leaves the command running. */
  quietMs: z.int().min(100).max(3_600_000).default(30_000),
  user: z.string().optional(),
  cwd: z.string().optional(),
  environment: z.record(z.string(), z.string()).optional(),
  /** Run once in a shell that has no state yet; its output is not shown. */
  startup: z.string().max(65_536).optional(),
});
export type ShellSettings = z.infer<typeof Settings>;

const State = z.object({ shell: Settings.default(() => Settings.parse({})) });

/** @throws BoundaryError("infrastructure"): the task's mistake, not the model's */
export function shellSettings(instance: JsonObject): ShellSettings {
  const parsed = State.safeParse(instance);
  if (parsed.success) return parsed.data.shell;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join(".") ?? "shell";
  throw new BoundaryError("infrastructure", "bad_instance", `the instance's ${where}: ${issue?.message ?? "is wrong"}`);
}
