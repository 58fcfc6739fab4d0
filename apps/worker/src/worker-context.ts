/** What the jobs of a worker process work with. Built once by `compose`; jobs construct no adapter themselves. */
import type { McpServers } from "@rolldeck/agent/io/mcp/servers";
import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import type { Judge, Task } from "@rolldeck/contracts/ports/task";
import type { Tool } from "@rolldeck/contracts/ports/tool";
import type { Prices } from "@rolldeck/contracts/prices";
import type { Pool } from "@rolldeck/db/connect";
import type { ModelOf } from "@rolldeck/db/gpu-workers";
import type { BatchWriter } from "@rolldeck/db/hot/batch-writer";
import type { StageClaim } from "@rolldeck/db/hot/renew-leases";
import type { AnyJob } from "@rolldeck/queue/producer";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import type { Logger } from "pino";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Measures } from "./measures.ts";
import type { ModelTokenizers } from "./model-tokenizers.ts";
import type { ReconcileRequests } from "./reconcile-requests.ts";
import type { RunWatch } from "./run-watch.ts";
import type { RunWaits } from "./sampling/run-waits.ts";
import type { RolloutSandboxes } from "./sandboxes/rollout-sandboxes.ts";
import type { SandboxUpkeep } from "./sandboxes/upkeep.ts";
import type { TrainerWatch } from "./trainers/trainer-watch.ts";

export type WorkerClaim =
  | ({ readonly kind: "rollout" } & StageClaim)
  | { readonly kind: "prepare"; readonly runId: string; readonly claim: number }
  | { readonly kind: "update"; readonly stepId: string; readonly claim: number };

/** By run: the fleet gives one workers of its own. */
export interface ModelBackends {
  /** False where no address is configured for it. */
  knows(run: ModelOf<BackendConfig>): boolean;
  /** Where it is; null where that is not configured, or changes. */
  urlOf(run: ModelOf<BackendConfig>): string | null;
  /** @throws BoundaryError("model-server") for one it does not know */
  of(run: ModelOf<BackendConfig>): StepBackend;
}

export interface WorkerContext {
  readonly workerId: string;
  readonly pool: Pool;
  readonly writer: Pick<BatchWriter, "write">;
  readonly leases: LeaseKeeper<WorkerClaim>;
  readonly runs: Pick<RunWatch, "get" | "learn" | "now">;
  readonly tasks: Readonly<Record<string, Task>>;
  /** The same tasks over the data sets and options that configs name. */
  readonly openedTasks: Pick<OpenedTasks, "of" | "all">;
  readonly tools: Readonly<Record<string, Tool>>;
  /** Servers of the operator's list whose tools runs may ask for. */
  readonly mcp: Pick<McpServers, "mount" | "isBoxed">;
  readonly tokenizers: Pick<ModelTokenizers, "load" | "contentHash">;
  readonly backends: ModelBackends;
  readonly sandboxes: RolloutSandboxes;
  readonly sandboxUpkeep: Pick<SandboxUpkeep, "begin" | "stop">;
  /** Trainers that are launched with runs. */
  readonly trainerJobs: Pick<TrainerWatch, "begin" | "stop">;
  /** Answers verifiers' questions; null where the operator lists none. */
  readonly judge: Judge | null;
  /** What things cost here; null where the operator names none. */
  readonly prices: Prices | null;
  /** What samplers of a run wait for, said on its page. */
  readonly waits: Pick<RunWaits, "of">;
  /** Runs that this process reconciles at the moment. */
  readonly reconciles: Pick<ReconcileRequests, "here" | "isHere">;
  enqueue(jobs: readonly AnyJob[]): Promise<void>;
  /** Asks for a reconcile through the queue; never throws. */
  requestReconcile(runId: string): void;
  /** True while the run's rollouts are to be handed back at their next turn boundary. */
  pausing(runId: string): boolean;
  /** Aborts when the process is to stop: hand back at the next turn boundary. */
  readonly stopping: AbortSignal;
  /** The database's clock, milliseconds. */
  databaseNow(): number;
  readonly measures: Measures;
  readonly log: Logger;
}
