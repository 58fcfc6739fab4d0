/** Health checks of a task: asked again and again, never without end. */
import { setTimeout as delay } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { lastWords } from "./in-sandbox.ts";
import type { TaskHealthcheck } from "./task-file.ts";

/**
 * Until the command ends well. Failures in the start period don't count; of the others, `retries` in a row are too many.
 * @param now milliseconds of any steady clock
 * @throws BoundaryError("sandbox", "unhealthy")
 */
export async function waitUntilHealthy(
  check: TaskHealthcheck,
  sandbox: Sandbox,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const graceUntil = now() + check.startPeriodMs;
  for (let failures = 0; ; ) {
    const inGrace = now() < graceUntil;
    const command = ["/bin/sh", "-c", check.command];
    const result = await sandbox.exec({ command, timeoutMs: check.timeoutMs }, signal);
    if (result.exitCode === 0) return;
    if (!inGrace) failures++;
    if (failures >= check.retries) {
      const how = result.timedOut ? `took more than ${check.timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
      const message = `the task's health check ${how}, ${failures} times: ${lastWords(result)}`;
      throw new BoundaryError("sandbox", "unhealthy", message, { retryable: true });
    }
    // An interval of 0 is no reason to keep a core busy.
    await delay(Math.max(100, inGrace ? check.startIntervalMs : check.intervalMs), undefined, { signal });
  }
}
