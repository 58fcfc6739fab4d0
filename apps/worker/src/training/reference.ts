/** What the policy that a run began with (its version 0) says of rows: the other side of every KL. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { newestCheckpoint } from "@rolldeck/db/training/checkpoints";
import type { ModelBackends } from "../worker-context.ts";
import { inRequests } from "./in-requests.ts";
import { sampledTemperature } from "./loss-spec.ts";

export interface ReferenceScene {
  readonly context: { readonly pool: Pool; readonly backends: ModelBackends };
  readonly runId: string;
  readonly config: RunConfig;
  readonly signal: AbortSignal;
}

/**
 * Logprobs of each row's tokens, null for its first; in the order given.
 * @throws BoundaryError model-server when the server has no such weights or no such call
 */
export async function referenceLogprobs(
  { context, runId, config, signal }: ReferenceScene,
  rows: readonly { readonly tokens: readonly number[] }[],
): Promise<(number | null)[][]> {
  const backend = context.backends.of({ runId, config });
  const reference = await newestCheckpoint(context.pool, runId, 0);
  if (reference === null) throw new BoundaryError("model-server", "not_found", "the run's first weights were not kept");
  if (!backend.score) throw new BoundaryError("model-server", "unsupported", "this server keeps no reference policy");
  const found: (number | null)[][] = [];
  for (const chunk of inRequests(rows)) {
    const asked = { path: reference.path, rows: chunk.map(({ tokens }) => tokens), signal };
    const scored = await backend.score({ ...asked, temperature: sampledTemperature(config) });
    found.push(...scored.map((logprobs) => [null, ...logprobs]));
  }
  return found;
}
