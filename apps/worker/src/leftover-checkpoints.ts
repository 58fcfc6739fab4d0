/** Files of checkpoints that are out of use, of runs that are over: whoever was to delete them did not live to do it. */
import { BackendConfig } from "@rolldeck/contracts/backend-config";
import { gpuWorkerNameSql } from "@rolldeck/db/gpu-workers";
import { deletableSql } from "@rolldeck/db/training/remove-checkpoints";
import { z } from "zod";
import { lastToken } from "./training/fence-token.ts";
import { deleteFiles } from "./training/remove-checkpoints.ts";
import type { WorkerContext } from "./worker-context.ts";

const Row = z.object({
  runId: z.string(),
  config: z.object({ backend: BackendConfig }),
  prepareClaim: z.int(),
  modelId: z.string(),
});

/** A round looks at this many runs at most; the others have their turn in the next. */
const breadth = 4;
const limitMs = 60_000;

/** One round over the runs whose server answers. What can't be deleted now is tried again in a later round. */
export async function deleteLeftovers(context: WorkerContext): Promise<void> {
  const { rows } = await context.pool.query(
    `select r.id as "runId", json_build_object('backend', r.config -> 'backend') as config, r.prepare_claim as "prepareClaim", coalesce(r.model_id, '') as "modelId"
     from (select distinct run_id from checkpoints p where ${deletableSql("p")}) c join runs r on r.id = c.run_id
       join gpu_workers g on g.name = ${gpuWorkerNameSql("r")} and g.state = 'ready'
     where r.ended_at is not null and r.model_boot_id is null order by random() limit $1`,
    [breadth],
  );
  for (const { runId, config, prepareClaim, modelId } of z.array(Row).parse(rows)) {
    const signal = AbortSignal.any([context.stopping, AbortSignal.timeout(limitMs)]);
    const fence = { runId, token: lastToken(prepareClaim) };
    const model = context.backends.of({ runId, config }).adoptModel({ modelId, fence, signal });
    await deleteFiles({ context, runId, model });
  }
}
