/**
 * The sampler of the version that serves. It notices when the server has lost the run's model: servers without a boot id do not say that
 * they restarted, so it shows only at the next request, and the model is then made again.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sampler } from "@rolldeck/contracts/ports/sampler";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { forgetServedModel } from "@rolldeck/db/training/forget-model";
import type { Serving } from "../run-watch.ts";
import type { WorkerContext } from "../worker-context.ts";
import type { Wait } from "./run-waits.ts";

const gone: ReadonlySet<string> = new Set(["unknown_model", "not_found"]);

export function servingSampler(
  context: Pick<WorkerContext, "pool" | "backends" | "log" | "requestReconcile">,
  { runId, config }: { readonly runId: string; readonly config: RunConfig },
  { samplingSessionId, version }: Serving,
  onWait: (wait: Wait) => void,
): Sampler {
  const backend = context.backends.of({ runId, config });
  const sampler = backend.sampler({ samplingSessionId, policyVersion: version, onWait });
  if (backend.recovery === "by-step") return sampler;
  return {
    sample: async (request, signal) => {
      try {
        return await sampler.sample(request, signal);
      } catch (error) {
        const isGone = error instanceof BoundaryError && gone.has(error.code);
        // Many rollouts find it at once; the first one's word counts.
        if (isGone && (await forgetServedModel(context.pool, runId, samplingSessionId))) {
          context.log.warn({ runId, err: error }, "the model server no longer has the version that serves");
          context.requestReconcile(runId);
        }
        throw error;
      }
    },
  };
}
