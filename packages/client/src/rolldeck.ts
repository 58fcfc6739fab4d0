/**
 * The typed SDK over REST `/api/v1`: every answer is parsed with the schema of `contracts`, every refusal is an ApiProblem.
 *
 *   const rolldeck = new Rolldeck({ url: "http://127.0.0.1:3000", token });
 *   const { runId } = await rolldeck.launchRun({ taskSets: [{ name: "key-chain" }] });
 *   for await (const event of rolldeck.watch(runId)) console.log(event.seq, event.body.type);
 */
import { ArtifactList, type ListArtifacts } from "@rolldeck/contracts/api/artifacts";
import type { BatchFormat } from "@rolldeck/contracts/api/batches";
import { CheckpointInfo, type ExportFormat, RunCheckpoints, RunRestored } from "@rolldeck/contracts/api/checkpoints";
import {
  ComparisonDetail,
  ComparisonPage,
  type LaunchComparison,
  LaunchedComparison,
  type ListComparisons,
} from "@rolldeck/contracts/api/comparisons";
import { Discards } from "@rolldeck/contracts/api/discards";
import {
  type ChangeDispatcher,
  DispatcherReply,
  type PartActions,
  PartReply,
  Quotas,
  type SetPool,
  type SetQuota,
} from "@rolldeck/contracts/api/dispatch";
import { Durations, type ReadDurations } from "@rolldeck/contracts/api/durations";
import { EvaluationReport, type ReadEvaluation } from "@rolldeck/contracts/api/evaluation";
import { type DrainFleetHost, Fleet, FleetLog, RunGpuWorkers } from "@rolldeck/contracts/api/fleet";
import {
  BatchPage,
  BatchReply,
  type ReadBatch,
  type ReadTokens,
  type ReadTurns,
  type RequestBatch,
  RolloutDetail,
  TokenPage,
  type TrainerHeartbeat,
  TurnPage,
} from "@rolldeck/contracts/api/rollouts";
import {
  type CompareRuns,
  Comparison,
  ConfigCheck,
  EventPage,
  Launched,
  type ListRuns,
  Matrix,
  MetricsReply,
  type ReadEvents,
  type ReadMatrix,
  type ReadMetrics,
  type ReadTimeline,
  type RunActions,
  RunDetail,
  RunPage,
  RunStatusReply,
  Timeline,
} from "@rolldeck/contracts/api/runs";
import {
  type KeepSandbox,
  type ListRunSandboxes,
  RolloutSandboxes,
  RunSandboxes,
  SandboxInfo,
} from "@rolldeck/contracts/api/sandboxes";
import { Pools, type ReadSchedule, Schedule, WaitingNow } from "@rolldeck/contracts/api/schedule";
import { Servings, StartedServing } from "@rolldeck/contracts/api/servings";
import { SimulationInfo, type StartSimulation } from "@rolldeck/contracts/api/simulations";
import {
  Catalogue,
  CreatedToken,
  type CreateToken,
  Me,
  SignInCode,
  SystemState,
  TokenInfo,
} from "@rolldeck/contracts/api/system";
import { BatchRow } from "@rolldeck/contracts/batch-row";
import type { RunEvent } from "@rolldeck/contracts/events";
import type { FleetHostSpec } from "@rolldeck/contracts/fleet";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import { LaunchedTrainer } from "@rolldeck/contracts/trainer-jobs";
import { z } from "zod";
import { type BatchFile, fetchBatch } from "./fetch-batch.ts";
import { type Call, type RequestOptions, request, requestStream } from "./request.ts";
import { type WatchOptions, watchEvents } from "./watch-run.ts";

type In<T extends z.ZodType> = z.input<T>;
export interface WriteOptions {
  /** The same key with the same request is done once; give one to have unanswered requests repeated. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}
export interface ReadOptions {
  readonly signal?: AbortSignal;
}

export class Rolldeck {
  readonly #options: RequestOptions;

  constructor(options: RequestOptions) {
    this.#options = options;
  }

  listRuns(query: In<typeof ListRuns> = {}, options: ReadOptions = {}) {
    return this.#get("/runs", RunPage, query, options);
  }
  getRun(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}`, RunDetail, {}, options);
  }
  /** @param config an object, or YAML or JSON text */
  launchRun(config: unknown, options: WriteOptions = {}) {
    return this.#post("/runs", Launched, { config }, options);
  }
  /** Everything launch would say, without launching. */
  checkConfig(config: unknown, options: ReadOptions = {}) {
    return this.#post("/runs/check", ConfigCheck, { config }, options);
  }
  actOnRun(runId: string, action: (typeof RunActions)[number], options: WriteOptions & { reason?: string } = {}) {
    const { reason, ...rest } = options;
    return this.#post(`/runs/${id(runId)}/${action}`, RunStatusReply, { reason: reason ?? null }, rest);
  }
  /** Bounds, weight, priority, start rate of a run that is not over; what is left out stays. */
  changeDispatcher({ runId, ...change }: In<typeof ChangeDispatcher>, options: WriteOptions = {}) {
    return this.#post(`/runs/${id(runId)}/dispatcher`, DispatcherReply, change, options);
  }
  actOnStep(stepId: string, action: (typeof PartActions)[number], options: WriteOptions & { reason?: string } = {}) {
    return this.#actOn(`/steps/${id(stepId)}/${action}`, options);
  }
  actOnGroup(groupId: string, action: (typeof PartActions)[number], options: WriteOptions & { reason?: string } = {}) {
    return this.#actOn(`/groups/${id(groupId)}/${action}`, options);
  }
  actOnRollout(
    rolloutId: string,
    action: (typeof PartActions)[number],
    options: WriteOptions & { reason?: string } = {},
  ) {
    return this.#actOn(`/rollouts/${id(rolloutId)}/${action}`, options);
  }
  readEvents({ runId, ...query }: In<typeof ReadEvents>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/events`, EventPage, query, options);
  }
  readMetrics({ runId, ...query }: In<typeof ReadMetrics>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/metrics`, MetricsReply, query, options);
  }
  readMatrix({ runId, ...query }: In<typeof ReadMatrix>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/matrix`, Matrix, query, options);
  }
  readTimeline({ runId, ...query }: In<typeof ReadTimeline>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/timeline`, Timeline, query, options);
  }
  readDurations({ runId, ...query }: In<typeof ReadDurations>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/durations`, Durations, query, options);
  }
  compareRuns(query: In<typeof CompareRuns>, options: ReadOptions = {}) {
    return this.#get("/compare", Comparison, query, options);
  }
  /** One config as several runs, one for each variant: all of them, or none. */
  launchComparison(comparison: In<typeof LaunchComparison>, options: WriteOptions = {}) {
    return this.#post("/comparisons", LaunchedComparison, comparison, options);
  }
  listComparisons(query: In<typeof ListComparisons> = {}, options: ReadOptions = {}) {
    return this.#get("/comparisons", ComparisonPage, query, options);
  }
  getComparison(comparisonId: string, options: ReadOptions = {}) {
    return this.#get(`/comparisons/${id(comparisonId)}`, ComparisonDetail, {}, options);
  }
  readEvaluation({ runId, ...query }: In<typeof ReadEvaluation>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/evaluation`, EvaluationReport, query, options);
  }
  /** What a step's update trained, as files: JSON Lines in pages, or one Parquet file. */
  fetchStepBatch(
    runId: string,
    step: number,
    options: ReadOptions & { readonly format?: BatchFormat } = {},
  ): AsyncGenerator<BatchFile, void, void> {
    return fetchBatch(this.#options, `/runs/${id(runId)}/steps/${step}/batch`, options);
  }
  /** The same, row by row. */
  async *readStepBatch(runId: string, step: number, options: ReadOptions = {}): AsyncGenerator<BatchRow, void, void> {
    for await (const { bytes } of this.fetchStepBatch(runId, step, options))
      for (const line of new TextDecoder().decode(bytes).split("\n"))
        if (line !== "") yield BatchRow.parse(JSON.parse(line));
  }

  /** A run's checkpoints, why each is kept, and the runs around it. */
  readCheckpoints(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/checkpoints`, RunCheckpoints, {}, options);
  }
  /** A pinned one stays whatever the run keeps. */
  pinCheckpoint(checkpointId: string, pinned: boolean, options: WriteOptions = {}) {
    return this.#post(`/checkpoints/${id(checkpointId)}/pin`, CheckpointInfo, { pinned }, options);
  }
  /** Sets a training run that is over back to one of its checkpoints. */
  restoreRun(runId: string, version: number, options: WriteOptions = {}) {
    return this.#post(`/runs/${id(runId)}/restore`, RunRestored, { version }, options);
  }
  /** Asks for the worker that reads what a run on the fleet saved; `fleet` in the answer says where it stands. */
  wakeFleetReader(runId: string, options: WriteOptions = {}) {
    return this.#post(`/runs/${id(runId)}/reader`, RunCheckpoints, {}, options);
  }
  releaseFleetReader(runId: string, options: ReadOptions = {}) {
    return this.#send({ method: "DELETE", path: `/runs/${id(runId)}/reader`, reply: RunCheckpoints, ...options });
  }
  /**
   * A tar of a Hugging Face folder, or with `peft` of the adapter alone; `length` = its size, and whoever got fewer bytes has no
   * whole one.
   */
  async exportCheckpoint(
    checkpointId: string,
    { format, ...options }: ReadOptions & { readonly format?: ExportFormat } = {},
  ) {
    const path = `/checkpoints/${id(checkpointId)}/export`;
    const { headers, bytes } = await requestStream(this.#options, {
      method: "GET",
      path,
      query: { format },
      ...options,
    });
    return { length: Number(headers.get("content-length")), bytes };
  }

  /** The key in the answer is shown once. */
  serveCheckpoint(checkpointId: string, options: ReadOptions = {}) {
    return this.#post(`/checkpoints/${id(checkpointId)}/serve`, StartedServing, {}, options);
  }
  listServings(options: ReadOptions = {}) {
    return this.#get("/servings", Servings, {}, options);
  }
  /** For good. @returns those that go on */
  stopServing(servingId: string, options: WriteOptions = {}) {
    return this.#post(`/servings/${id(servingId)}/stop`, Servings, {}, options);
  }

  getRollout(rolloutId: string, options: ReadOptions & { attempt?: number } = {}) {
    const { attempt, ...rest } = options;
    return this.#get(`/rollouts/${id(rolloutId)}`, RolloutDetail, { attempt }, rest);
  }
  readTurns({ rolloutId, ...query }: In<typeof ReadTurns>, options: ReadOptions = {}) {
    return this.#get(`/rollouts/${id(rolloutId)}/turns`, TurnPage, query, options);
  }
  readTokens({ rolloutId, ...query }: In<typeof ReadTokens>, options: ReadOptions = {}) {
    return this.#get(`/rollouts/${id(rolloutId)}/tokens`, TokenPage, query, options);
  }

  listArtifacts({ rolloutId, ...query }: In<typeof ListArtifacts>, options: ReadOptions = {}) {
    return this.#get(`/rollouts/${id(rolloutId)}/artifacts`, ArtifactList, query, options);
  }

  listRolloutSandboxes(rolloutId: string, options: ReadOptions = {}) {
    return this.#get(`/rollouts/${id(rolloutId)}/sandboxes`, RolloutSandboxes, {}, options);
  }
  listRunSandboxes({ runId, ...query }: In<typeof ListRunSandboxes>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/sandboxes`, RunSandboxes, query, options);
  }
  /** For so many minutes from now, after its rollout is done with it. */
  keepSandbox({ sandboxId, ...body }: In<typeof KeepSandbox>, options: WriteOptions = {}) {
    return this.#post(`/sandboxes/${id(sandboxId)}/keep`, SandboxInfo, body, options);
  }
  /** Lets a kept one go now. */
  closeSandbox(sandboxId: string, options: WriteOptions = {}) {
    return this.#post(`/sandboxes/${id(sandboxId)}/close`, SandboxInfo, {}, options);
  }

  /** One step as it was scheduled, and where its time goes. */
  readSchedule({ runId, ...query }: In<typeof ReadSchedule>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/schedule`, Schedule, query, options);
  }
  /** Why rollouts wait now, and what would let them on. */
  readWaiting(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/waiting`, WaitingNow, {}, options);
  }
  /** What was left out of training, by task, length and why. */
  readDiscards(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/discards`, Discards, {}, options);
  }
  listPools(options: ReadOptions = {}) {
    return this.#get("/pools", Pools, {}, options);
  }

  /** Played by the server, some seconds long: look at it until it is over. */
  startSimulation(body: In<typeof StartSimulation>, options: WriteOptions = {}) {
    return this.#post("/simulations", SimulationInfo, body, options);
  }
  getSimulation(simulationId: string, options: ReadOptions = {}) {
    return this.#get(`/simulations/${id(simulationId)}`, SimulationInfo, {}, options);
  }
  cancelSimulation(simulationId: string, options: WriteOptions = {}) {
    return this.#post(`/simulations/${id(simulationId)}/cancel`, SimulationInfo, {}, options);
  }

  /** Driven runs: idempotent by (run, trainer step). */
  requestBatch({ runId, ...body }: In<typeof RequestBatch>, options: WriteOptions = {}) {
    return this.#post(`/runs/${id(runId)}/batches`, BatchReply, body, options);
  }
  readBatch({ runId, batchId, ...query }: In<typeof ReadBatch>, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/batches/${id(batchId)}`, BatchPage, query, options);
  }
  heartbeat({ runId, ...body }: In<typeof TrainerHeartbeat>, options: WriteOptions = {}) {
    return this.#post(`/runs/${id(runId)}/heartbeat`, RunStatusReply, body, options);
  }
  /** Of a run whose trainer was launched with it, newest attempt first. */
  readLaunchedTrainer(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/trainer`, LaunchedTrainer, {}, options);
  }

  listQuotas(options: ReadOptions = {}) {
    return this.#get("/quotas", Quotas, {}, options);
  }
  /** Owner only; null takes the quota away. */
  setQuota(quota: In<typeof SetQuota>, options: WriteOptions = {}) {
    return this.#post("/quotas", Quotas, quota, options);
  }
  /** Owner only. */
  setPool({ resource, ...change }: In<typeof SetPool>, options: WriteOptions = {}) {
    return this.#post(`/pools/${id(resource)}`, Quotas, change, options);
  }

  /** Hosts with their GPUs, and the GPU workers of runs. */
  getFleet(options: ReadOptions = {}) {
    return this.#get("/fleet", Fleet, {}, options);
  }
  /** Owner only. */
  addFleetHost(host: In<typeof FleetHostSpec>, options: WriteOptions = {}) {
    return this.#post("/fleet/hosts", Fleet, host, options);
  }
  /** Owner only; `draining: false` lets it take workers again. */
  drainFleetHost({ name, ...body }: In<typeof DrainFleetHost>, options: WriteOptions = {}) {
    return this.#post(`/fleet/hosts/${id(name)}/drain`, Fleet, body, options);
  }
  /** Owner only. */
  removeFleetHost(name: string, options: ReadOptions = {}) {
    return this.#send({ method: "DELETE", path: `/fleet/hosts/${id(name)}`, reply: Fleet, ...options });
  }
  /** Of a run on the fleet: where each of its workers is, or why it waits. */
  readRunGpuWorkers(runId: string, options: ReadOptions = {}) {
    return this.#get(`/runs/${id(runId)}/gpu-workers`, RunGpuWorkers, {}, options);
  }
  readFleetLog(workerId: string, options: ReadOptions & { readonly lines?: number } = {}) {
    const { lines, ...rest } = options;
    return this.#get(`/fleet/workers/${id(workerId)}/log`, FleetLog, { lines }, rest);
  }

  getCatalogue(options: ReadOptions = {}) {
    return this.#get("/catalogue", Catalogue, {}, options);
  }
  getSystem(options: ReadOptions = {}) {
    return this.#get("/system", SystemState, {}, options);
  }
  me(options: ReadOptions = {}) {
    return this.#get("/me", Me, {}, options);
  }
  listTokens(options: ReadOptions = {}) {
    return this.#get("/tokens", z.array(TokenInfo), {}, options);
  }
  createToken(body: In<typeof CreateToken>, options: WriteOptions = {}) {
    return this.#post("/tokens", CreatedToken, body, options);
  }
  revokeToken(tokenId: string, options: ReadOptions = {}) {
    return this.#send({ method: "DELETE", path: `/tokens/${id(tokenId)}`, reply: TokenInfo, ...options });
  }
  /** Owner only: a link that signs a browser in once. */
  createSignInCode(options: WriteOptions = {}) {
    return this.#post("/sign-in-codes", SignInCode, {}, options);
  }

  /** Every event of the run after `after`, once, in order, until the run ends or the signal aborts. */
  watch(runId: string, options: WatchOptions = {}): AsyncGenerator<RunEvent, void, void> {
    const read = (after: number, waitMs: number) =>
      this.readEvents({ runId, after, waitMs, limit: 1000 }, { signal: options.signal });
    const isOver = async () => endedRunStatuses.includes((await this.getRun(runId, { signal: options.signal })).status);
    return watchEvents(read, isOver, options);
  }

  #actOn(path: string, options: WriteOptions & { reason?: string }) {
    const { reason, ...rest } = options;
    return this.#post(path, PartReply, { reason: reason ?? null }, rest);
  }
  #get<T extends z.ZodType>(path: string, reply: T, query: Readonly<Record<string, unknown>>, options: ReadOptions) {
    return this.#send({ method: "GET", path, reply, query, ...options });
  }
  #post<T extends z.ZodType>(path: string, reply: T, body: unknown, options: WriteOptions) {
    return this.#send({ method: "POST", path, reply, body, ...options });
  }
  #send<T extends z.ZodType>(call: Call<T>): Promise<z.output<T>> {
    return request(this.#options, call);
  }
}

/** Ids come from callers: nothing in one may change the path. */
const id = (text: string): string => encodeURIComponent(text);
