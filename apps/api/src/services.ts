/**
 * What the API can do, once: tRPC and REST are two shapes over these functions. Types come from `contracts` alone, so the
 * router's type carries no adapter into the browser's type check.
 *
 * Errors: InputError names the field, NotFoundError, ConflictError; anything else is our own fault and becomes a 500.
 */

import type { ArtifactContent, ArtifactList, ListArtifacts, ReadArtifact } from "@rolldeck/contracts/api/artifacts";
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
import type { z } from "zod";

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
export interface ScheduleServices {
  ofStep: Call<typeof ReadSchedule, typeof Schedule>;
  waiting: Call<typeof RunRef, typeof WaitingNow>;
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
  readonly rollouts: RolloutServices;
  readonly sandboxes: SandboxServices;
  readonly schedule: ScheduleServices;
  readonly simulations: SimulationServices;
  readonly dispatch: DispatchServices;
  readonly driven: DrivenServices;
  readonly tokens: TokenServices;
  readonly catalogue: { get(): Promise<z.output<typeof Catalogue>> };
  readonly system: { state(): Promise<z.output<typeof SystemState>> };
}
