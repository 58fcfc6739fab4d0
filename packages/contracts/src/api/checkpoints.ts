/** Checkpoints of runs, and where runs come from: the Checkpoints tab, `/api/v1/checkpoints` and `/api/v1/runs/{runId}/…`. */
import { z } from "zod";
import { fleetWorkerStates, workerRoles } from "../fleet.ts";
import { keepReasons } from "../keep-reasons.ts";
import { lineageRelations, runStatuses } from "../lifecycle.ts";
import { CheckpointConfig } from "../run-config.ts";
import { RunId, RunRef } from "./runs.ts";

/** A run and its policy version, which is the number of the step that made it: `01h8…-v40`. */
export const CheckpointId = z
  .string()
  .regex(/^[0-9a-z]{8,40}-v(?:0|[1-9]\d{0,6})$/, "a checkpoint id is a run id, -v and a version: 01h8x2m4-v40");
export const checkpointId = (runId: string, version: number): string => `${runId}-v${version}`;

/** @param id one that `CheckpointId` accepted */
export function parseCheckpointId(id: string): { readonly runId: string; readonly version: number } {
  const at = id.lastIndexOf("-v");
  return { runId: id.slice(0, at), version: Number(id.slice(at + 2)) };
}

export const CheckpointRef = z.strictObject({ id: CheckpointId });
/** `hf`: a whole model, an adapter merged into its base; `peft`: the adapter alone, of a run that trained one. */
export const exportFormats = ["hf", "peft"] as const;
export type ExportFormat = (typeof exportFormats)[number];
export const ExportCheckpoint = CheckpointRef.extend({ format: z.enum(exportFormats).default("hf") });
export const PinCheckpoint = z.strictObject({
  id: CheckpointId,
  /** True: it stays whatever the run keeps. */
  pinned: z.boolean(),
});
export const ReadCheckpoints = RunRef;
export const RestoreRun = z.strictObject({
  runId: RunId,
  /** Of the checkpoint that the run goes on from. */
  version: z.int().min(0).max(9_999_999),
});
export const RunRestored = z.object({
  runId: z.string(),
  status: z.enum(runStatuses),
  /** The run that holds its later steps now; null = there were none. */
  supersededRunId: z.string().nullable(),
});

export const RelatedRun = z.object({
  runId: z.string(),
  name: z.string(),
  status: z.enum(runStatuses),
  /** `fork`: the later one began with the weights; `superseded`: it holds what the other had made before it was set back. */
  relation: z.enum(lineageRelations),
  /** Of the parent; null = the newest, and the run has not begun yet. */
  version: z.int().nullable(),
});
export type RelatedRun = z.infer<typeof RelatedRun>;

export const CheckpointInfo = z.object({
  id: z.string(),
  version: z.int(),
  name: z.string(),
  bytes: z.number().nullable(),
  createdAt: z.string(),
  pinned: z.boolean(),
  /** The rule's metric of this version; null = not measured, or no metric is asked for. */
  measure: z.number().nullable(),
  /** Empty: it goes when the run next removes what it does not keep. */
  keptAs: z.array(z.enum(keepReasons)),
  /** Runs that came from it. */
  children: z.array(RelatedRun),
});
export type CheckpointInfo = z.infer<typeof CheckpointInfo>;

/** Through which worker what a run on the fleet saved is read: for exports, servings and runs that begin with it. */
export const FleetReading = z.object({
  /** `asleep`: none is there, one can be asked for; `coming`: one waits for its place or starts; `ready`: its files can be read. */
  state: z.enum(["asleep", "coming", "ready"]),
  /** Where it stands, for people: while one is coming, the fleet's own reason. */
  message: z.string(),
  /** What would help; null = nothing, or waiting does. */
  remedy: z.string().nullable(),
  /** The worker that is meant: the run's own, or its reader. */
  worker: z
    .object({
      workerId: z.string(),
      role: z.enum(workerRoles),
      state: z.enum(fleetWorkerStates),
      host: z.string().nullable(),
    })
    .nullable(),
  /** Why no reader can be asked for, or need be; null = one can. */
  wakeRefusal: z.string().nullable(),
  /** There is a reader that can be given back. */
  canRelease: z.boolean(),
});
export type FleetReading = z.infer<typeof FleetReading>;

export const RunCheckpoints = z.object({
  runId: z.string(),
  rule: CheckpointConfig,
  /** Where the run itself comes from; null = from no other run. */
  parent: RelatedRun.nullable(),
  /** Newest first. */
  checkpoints: z.array(CheckpointInfo),
  /** All runs that came from this one, newest first, at most 200. */
  children: z.array(RelatedRun),
  /** Why the run can't be set back to a checkpoint now; null = it can. */
  restoreRefusal: z.string().nullable(),
  /** Why its checkpoints can be neither exported nor served here now; null = they can. */
  exportRefusal: z.string().nullable(),
  /** Of a run on the fleet; null = its files are read without a worker of its own. */
  fleet: FleetReading.nullable(),
  /** How they are exported where they can be. */
  exportFormats: z.array(z.enum(exportFormats)),
});
export type RunCheckpoints = z.infer<typeof RunCheckpoints>;
