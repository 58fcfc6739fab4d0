/** Checkpoints: what there is and why it stays, pins, setting a run back, and one as a stream. */
import {
  checkpointId,
  type ExportFormat,
  exportFormats,
  parseCheckpointId,
  type RelatedRun,
  type RunCheckpoints,
} from "@rolldeck/contracts/api/checkpoints";
import { ConflictError, InputError, NotFoundError } from "@rolldeck/contracts/errors";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { restoreRefusal, restoreRun } from "@rolldeck/db/hot/restore-run";
import { readCheckpoints, readLineage } from "@rolldeck/db/reads/read-checkpoints";
import { readConfig } from "@rolldeck/db/runs/read-config";
import { pinCheckpoint } from "@rolldeck/db/training/pin-checkpoint";
import { keptCheckpoints } from "@rolldeck/dispatch/kept-checkpoints";
import type { Pool } from "pg";
import type { CheckpointServices } from "../services.ts";
import type { CheckpointExports } from "./checkpoint-exports.ts";
import type { Stored, StoredPlaces } from "./stored-places.ts";
import { releaseReader, wakeReader } from "./wake-reader.ts";

export interface CheckpointServiceOptions {
  readonly pool: Pool;
  /** Tells the run's planner. */
  readonly wake: (runId: string) => Promise<void>;
  readonly places: Pick<StoredPlaces<Stored>, "refusal" | "reading">;
  readonly exports: Pick<CheckpointExports, "open">;
}

export function createCheckpointServices({
  pool,
  wake,
  places,
  exports,
}: CheckpointServiceOptions): CheckpointServices {
  const ofRun = async (runId: string): Promise<RunCheckpoints> => {
    const lineage = await readLineage(pool, runId);
    const config = await readConfig(pool, runId);
    const fleet = await places.reading(runId, config);
    return {
      runId,
      rule: config.checkpoints,
      parent: lineage.parent,
      children: lineage.children,
      checkpoints: await withReasons(pool, runId, config, lineage.children),
      restoreRefusal: restoreRefusal(lineage),
      exportRefusal: places.refusal(config) ?? (fleet === null || fleet.state === "ready" ? null : fleet.message),
      fleet,
      exportFormats: formatsOf(config),
    };
  };
  return {
    ofRun: ({ runId }) => ofRun(runId),
    async pin({ id, pinned }, by) {
      const { runId, version } = parseCheckpointId(id);
      await pinCheckpoint(pool, { runId, version }, pinned, by);
      const found = (await ofRun(runId)).checkpoints.find((checkpoint) => checkpoint.version === version);
      // Removed since: the pin came too late.
      if (found === undefined) throw new NotFoundError("checkpoint", id);
      return found;
    },
    async restore({ runId, version }, by) {
      const { supersededRunId } = await restoreRun(pool, runId, version, by);
      await wake(runId);
      return { runId, status: "queued", supersededRunId };
    },
    async wakeReader({ runId }, by) {
      await wakeReader(pool, { runId, config: await readConfig(pool, runId), places }, by);
      return ofRun(runId);
    },
    async releaseReader({ runId }) {
      await releaseReader(pool, { runId, config: await readConfig(pool, runId), places });
      return ofRun(runId);
    },
    async export({ id, format }) {
      const { runId, version } = parseCheckpointId(id);
      const config = await readConfig(pool, runId);
      const refusal = places.refusal(config);
      if (refusal !== null) throw new ConflictError(refusal);
      if (!formatsOf(config).includes(format)) throw new InputError([noAdapter]);
      return exports.open({ id, runId, version, config, format });
    },
  };
}

const formatsOf = ({ backend }: RunConfig): ExportFormat[] =>
  exportFormats.filter((format) => format === "hf" || backend.lora !== null);

const noAdapter = {
  path: "format",
  message: "the run trained all weights: there is no adapter",
  fix: "ask for hf",
};

async function withReasons(
  pool: Pool,
  runId: string,
  { checkpoints: rule }: RunConfig,
  children: readonly RelatedRun[],
): Promise<RunCheckpoints["checkpoints"]> {
  const found = await readCheckpoints(pool, runId, rule);
  const kept = keptCheckpoints(found, rule);
  return found.map(({ version, name, bytes, createdAt, pinned, measure }) => ({
    id: checkpointId(runId, version),
    version,
    name,
    bytes,
    createdAt,
    pinned,
    measure,
    keptAs: [...(kept.get(version) ?? [])],
    children: children.filter((child) => child.version === version),
  }));
}
