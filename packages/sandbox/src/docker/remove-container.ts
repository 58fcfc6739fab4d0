/** Removes a container with what runs in it, also where somebody else is removing it just now. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type Docker from "dockerode";
import { pause } from "../shared/waiting.ts";
import { containerMs, daemonTrouble, heard, statusOf } from "./daemon-trouble.ts";

const removalMs = 30_000;

/** One that is not there is removed. @throws BoundaryError("sandbox", "unavailable") */
export async function removeContainer(container: Docker.Container): Promise<void> {
  const giveUpMs = performance.now() + removalMs;
  for (let waitMs = 20; ; waitMs = Math.min(500, waitMs * 2)) {
    try {
      await heard("closing a sandbox", container.remove({ force: true, v: true }), { limitMs: containerMs });
      return;
    } catch (error) {
      if (statusOf(error) === 404) return;
      // 409: somebody else is removing it; it is closed when that is done.
      if (statusOf(error) !== 409 || performance.now() > giveUpMs) {
        const cause = error instanceof Error ? error : undefined;
        if (statusOf(error) === null) throw daemonTrouble(error, "closing a sandbox");
        const message = `closing a sandbox: ${cause?.message ?? String(error)}`;
        throw new BoundaryError("sandbox", "unavailable", message, { cause, retryable: true });
      }
    }
    await pause(waitMs);
  }
}
