/**
 * A model that its run no longer uses is taken out of its server's memory, where only few have room. Best effort: one that stays costs its
 * place until the server forgets our session. Servers that tell a model's step need no such help: a new holder's model replaces the old.
 */
import type { ClaimedPrepare } from "@rolldeck/db/training/claim-prepare";
import type { WorkerContext } from "../worker-context.ts";
import { lastToken } from "./fence-token.ts";

const limitMs = 10_000;

export async function letGo(
  context: Pick<WorkerContext, "backends" | "log">,
  claimed: ClaimedPrepare,
  modelId: string,
): Promise<void> {
  const { runId, claim } = claimed;
  const backend = context.backends.of(claimed);
  if (backend.recovery === "by-step") return;
  const fence = { runId, token: lastToken(claim) };
  try {
    await backend.adoptModel({ modelId, fence, signal: AbortSignal.timeout(limitMs) }).unload?.();
  } catch (error) {
    context.log.warn({ runId, modelId, err: error }, "a model that is no longer used was not unloaded");
  }
}
