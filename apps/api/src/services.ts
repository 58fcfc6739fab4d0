/**
 * What the API can do, once: tRPC and REST are two shapes over these functions. Types come from `contracts` alone, so the
 * router's type carries no adapter into the browser's type check.
 *
 * Errors: InputError names the field, NotFoundError, ConflictError, TooLargeError; anything else is our own fault and becomes a 500.
 */

import type { ArtifactContent, ArtifactList, ListArtifacts, ReadArtifact } from "@rolldeck/contracts/api/artifacts";
import type { ReadStepBatch, StepBatch } from "@rolldeck/contracts/api/batches";
import type {
  CheckpointInfo,
  CheckpointRef,
  ExportCheckpoint,
  PinCheckpoint,
  ReadCheckpoints,
  RestoreRun,
  RunCheckpoints,
  RunRestored,
} from "@rolldeck/contracts/api/checkpoints";
import type {
  ComparisonDetail,
  ComparisonPage,
  ComparisonRef,
  LaunchComparison,
  LaunchedComparison,
  ListComparisons,
} from "@rolldeck/contracts/api/comparisons";
import type { Discards } from "@rolldeck/contracts/api/discards";
import type {
  ActOnGroup,
  ActOnRollout,
  ActOnStep,
  ChangeDispatcher,
  DispatcherReply,
  PartReply,
  Quotas,
  SetPool,
  SetQuota,
} from "@rolldeck/contracts/api/dispatch";
import type { Durations, ReadDurations } from "@rolldeck/contracts/api/durations";
import type { EvaluationReport, ReadEvaluation } from "@rolldeck/contracts/api/evaluation";
import type {
  DrainFleetHost,
  Fleet,
  FleetHostRef,
  FleetLog,
  ReadFleetLog,
  RunGpuWorkers,
} from "@rolldeck/contracts/api/fleet";
import type {
  BatchPage,
  BatchReply,
  ReadBatch,
  ReadTokens,
  ReadTurns,
  RequestBatch,
  RolloutDetail,
  RolloutRef,
  TokenPage,
  TrainerHeartbeat,
  TurnPage,
} from "@rolldeck/contracts/api/rollouts";
import type {
  ActOnRun,
  CheckConfig,
  CompareRuns,
  Comparison,
  ConfigCheck,
  EventPage,
  Launched,
  LaunchRun,
  ListRuns,
  Matrix,
  MetricsReply,
  ReadEvents,
  ReadMatrix,
  ReadMetrics,
  ReadTimeline,
  RunDetail,
  RunPage,
  RunRef,
  RunStatusReply,
  Timeline,
} from "@rolldeck/contracts/api/runs";
import type {
  CloseSandbox,
  KeepSandbox,
  ListRolloutSandboxes,
  ListRunSandboxes,
  RolloutSandboxes,
  RunSandboxes,
  SandboxInfo,
} from "@rolldeck/contracts/api/sandboxes";
import type { PartState, Pools, ReadPart, ReadSchedule, Schedule, WaitingNow } from "@rolldeck/contracts/api/schedule";
import type { ServingRef, Servings, StartedServing } from "@rolldeck/contracts/api/servings";
import type { SimulationInfo, SimulationRef, StartSimulation } from "@rolldeck/contracts/api/simulations";
import type {
  Catalogue,
  CreatedToken,
  CreateToken,
  SignInCode,
  SystemState,
  TokenInfo,
  TokenRef,
} from "@rolldeck/contracts/api/system";
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import type { LaunchedTrainer } from "@rolldeck/contracts/trainer-jobs";
import type { z } from "zod";
import type { ByteStream } from "./http/reply.ts";

/** A call: parsed input in, the schema's output type out. */
type Call<I extends z.ZodType, O extends z.ZodType> = (input: z.output<I>) => Promise<z.output<O>>;

export interface RunServices {
  list: Call<typeof ListRuns, typeof RunPage>;
  get: Call<typeof RunRef, typeof RunDetail>;
  launch: Call<typeof LaunchRun, typeof Launched>;
  check: Call<typeof CheckConfig, typeof ConfigCheck>;
  /** @param by who asks, for the run's log */
  act(input: z.output<typeof ActOnRun>, by: string): Promise<z.output<typeof RunStatusReply>>;
  events: Call<typeof ReadEvents, typeof EventPage>;
  metrics: Call<typeof ReadMetrics, typeof MetricsReply>;
  matrix: Call<typeof ReadMatrix, typeof Matrix>;
  timeline: Call<typeof ReadTimeline, typeof Timeline>;
  durations: Call<typeof ReadDurations, typeof Durations>;
  compare: Call<typeof CompareRuns, typeof Comparison>;
  evaluation: Call<typeof ReadEvaluation, typeof EvaluationReport>;
  batch: Call<typeof ReadStepBatch, typeof StepBatch>;
}
export interface ComparisonServices {
  launch: Call<typeof LaunchComparison, typeof LaunchedComparison>;
  list: Call<typeof ListComparisons, typeof ComparisonPage>;
  get: Call<typeof ComparisonRef, typeof ComparisonDetail>;
}
export interface RolloutServices {
  get: Call<typeof RolloutRef, typeof RolloutDetail>;
  turns: Call<typeof ReadTurns, typeof TurnPage>;
  tokens: Call<typeof ReadTokens, typeof TokenPage>;
  artifacts: Call<typeof ListArtifacts, typeof ArtifactList>;
  artifact: Call<typeof ReadArtifact, typeof ArtifactContent>;
}
export interface SandboxServices {
  ofRollout: Call<typeof ListRolloutSandboxes, typeof RolloutSandboxes>;
  ofRun: Call<typeof ListRunSandboxes, typeof RunSandboxes>;
  /** @param by who asks, for the run's log */
  keep(input: z.output<typeof KeepSandbox>, by: string): Promise<SandboxInfo>;
  close(input: z.output<typeof CloseSandbox>, by: string): Promise<SandboxInfo>;
}
export interface CheckpointArchive {
  readonly fileName: string;
  readonly bytes: number;
  /** To be read whole or destroyed. */
  readonly body: ByteStream;
}
export interface CheckpointServices {
  ofRun: Call<typeof ReadCheckpoints, typeof RunCheckpoints>;
  /** @param by who asks, for the run's log; so below */
  pin(input: z.output<typeof PinCheckpoint>, by: string): Promise<CheckpointInfo>;
  restore(input: z.output<typeof RestoreRun>, by: string): Promise<z.output<typeof RunRestored>>;
  /** Asks for a worker of the fleet that reads what the run saved. */
  wakeReader(input: z.output<typeof RunRef>, by: string): Promise<z.output<typeof RunCheckpoints>>;
  releaseReader: Call<typeof RunRef, typeof RunCheckpoints>;
  export(input: z.output<typeof ExportCheckpoint>): Promise<CheckpointArchive>;
}
export interface ServingServices {
  list(): Promise<z.output<typeof Servings>>;
  /** @param by who asks, for the run's log; so below */
  start(input: z.output<typeof CheckpointRef>, by: string): Promise<StartedServing>;
  stop(input: z.output<typeof ServingRef>, by: string): Promise<z.output<typeof Servings>>;
}
export interface ScheduleServices {
  ofStep: Call<typeof ReadSchedule, typeof Schedule>;
  waiting: Call<typeof RunRef, typeof WaitingNow>;
  discards: Call<typeof RunRef, typeof Discards>;
  part: Call<typeof ReadPart, typeof PartState>;
  pools(): Promise<Pools>;
}
export interface SimulationServices {
  start: Call<typeof StartSimulation, typeof SimulationInfo>;
  get: Call<typeof SimulationRef, typeof SimulationInfo>;
  cancel: Call<typeof SimulationRef, typeof SimulationInfo>;
}
export interface DispatchServices {
  /** @param by who asks, for the run's log; so below */
  change(input: z.output<typeof ChangeDispatcher>, by: string): Promise<z.output<typeof DispatcherReply>>;
  actOnStep(input: z.output<typeof ActOnStep>, by: string): Promise<PartReply>;
  actOnGroup(input: z.output<typeof ActOnGroup>, by: string): Promise<PartReply>;
  actOnRollout(input: z.output<typeof ActOnRollout>, by: string): Promise<PartReply>;
  quotas(): Promise<Quotas>;
  setQuota: Call<typeof SetQuota, typeof Quotas>;
  setPool: Call<typeof SetPool, typeof Quotas>;
}
export interface DrivenServices {
  requestBatch: Call<typeof RequestBatch, typeof BatchReply>;
  readBatch: Call<typeof ReadBatch, typeof BatchPage>;
  heartbeat: Call<typeof TrainerHeartbeat, typeof RunStatusReply>;
  trainer: Call<typeof RunRef, typeof LaunchedTrainer>;
}
export interface FleetServices {
  get(): Promise<Fleet>;
  ofRun: Call<typeof RunRef, typeof RunGpuWorkers>;
  addHost(input: FleetHostSpec): Promise<Fleet>;
  drainHost: Call<typeof DrainFleetHost, typeof Fleet>;
  removeHost: Call<typeof FleetHostRef, typeof Fleet>;
  log: Call<typeof ReadFleetLog, typeof FleetLog>;
}
export interface TokenServices {
  list(): Promise<TokenInfoValue[]>;
  create: Call<typeof CreateToken, typeof CreatedToken>;
  revoke: Call<typeof TokenRef, typeof TokenInfo>;
  signInCode(): Promise<SignInCode>;
}
export type TokenInfoValue = z.output<typeof TokenInfo>;

export interface Services {
  readonly runs: RunServices;
  readonly comparisons: ComparisonServices;
  readonly rollouts: RolloutServices;
  readonly sandboxes: SandboxServices;
  readonly checkpoints: CheckpointServices;
  readonly servings: ServingServices;
  readonly schedule: ScheduleServices;
  readonly simulations: SimulationServices;
  readonly dispatch: DispatchServices;
  readonly driven: DrivenServices;
  readonly fleet: FleetServices;
  readonly tokens: TokenServices;
  readonly catalogue: { get(): Promise<z.output<typeof Catalogue>> };
  readonly system: { state(): Promise<z.output<typeof SystemState>> };
}
