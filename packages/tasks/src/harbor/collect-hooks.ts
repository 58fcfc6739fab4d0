/** Commands of `verifier.collect`: they note the state of the agent's sandbox before it changes. */

import { headWithin } from "@rolldeck/agent/core/cut-text";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { lastWords } from "./in-sandbox.ts";
import type { CollectHook } from "./task-file.ts";

/**
 * @returns those that did not end well, with what they said: an agent can make one fail, and is graded without what it would have made
 * @throws BoundaryError("sandbox")
 */
export async function runCollectHooks(
  hooks: readonly CollectHook[],
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string[]> {
  const failed: string[] = [];
  for (const { command, timeoutMs, user } of hooks) {
    const request = { command: ["/bin/sh", "-c", command], timeoutMs, ...(user === null ? {} : { user }) };
    const result = await sandbox.exec(request, signal);
    if (result.exitCode === 0) continue;
    const how = result.timedOut ? `was not done after ${timeoutMs / 1000} s` : `exited with ${result.exitCode}`;
    failed.push(`${headWithin(command, 200)} ${how}: ${lastWords(result)}`);
  }
  return failed;
}
