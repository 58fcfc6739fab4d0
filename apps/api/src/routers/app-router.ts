/** Every procedure of the app; the browser takes only this file's type. */
import { ListArtifacts } from "@rolldeck/contracts/api/artifacts";
import { CheckpointRef, PinCheckpoint, ReadCheckpoints, RestoreRun } from "@rolldeck/contracts/api/checkpoints";
import { ComparisonRef, LaunchComparison, ListComparisons } from "@rolldeck/contracts/api/comparisons";
import {
  ActOnGroup,
  ActOnRollout,
  ActOnStep,
  ChangeDispatcher,
  SetPool,
  SetQuota,
} from "@rolldeck/contracts/api/dispatch";
import { ReadDurations } from "@rolldeck/contracts/api/durations";
import { ReadEvaluation } from "@rolldeck/contracts/api/evaluation";
import { DrainFleetHost, FleetHostRef, ReadFleetLog } from "@rolldeck/contracts/api/fleet";
import {
  ReadBatch,
  ReadTokens,
  ReadTurns,
  RequestBatch,
  RolloutRef,
  TrainerHeartbeat,
} from "@rolldeck/contracts/api/rollouts";
import {
  ActOnRun,
  CheckConfig,
  CompareRuns,
  LaunchRun,
  ListRuns,
  ReadEvents,
  ReadMatrix,
  ReadMetrics,
  ReadTimeline,
  RunRef,
} from "@rolldeck/contracts/api/runs";
import { CloseSandbox, KeepSandbox, ListRolloutSandboxes, ListRunSandboxes } from "@rolldeck/contracts/api/sandboxes";
import { ReadPart, ReadSchedule } from "@rolldeck/contracts/api/schedule";
import { ServingRef } from "@rolldeck/contracts/api/servings";
import { SimulationRef, StartSimulation } from "@rolldeck/contracts/api/simulations";
import { CreateToken, TokenRef } from "@rolldeck/contracts/api/system";
import { FleetHostSpec } from "@rolldeck/contracts/fleet";
import { principalWords } from "../principal.ts";
import { ownerOnly, reads, router, writes } from "./trpc.ts";

const runs = router({
  list: reads.input(ListRuns).query(({ ctx, input }) => ctx.services.runs.list(input)),
  get: reads.input(RunRef).query(({ ctx, input }) => ctx.services.runs.get(input)),
  launch: writes.input(LaunchRun).mutation(({ ctx, input }) => ctx.services.runs.launch(input)),
  // A mutation only because configs outgrow a URL: it changes nothing, so a read token may call it.
  check: reads.input(CheckConfig).mutation(({ ctx, input }) => ctx.services.runs.check(input)),
  act: writes.input(ActOnRun).mutation(({ ctx, input }) => ctx.services.runs.act(input, principalWords(ctx.principal))),
  events: reads.input(ReadEvents).query(({ ctx, input }) => ctx.services.runs.events(input)),
  metrics: reads.input(ReadMetrics).query(({ ctx, input }) => ctx.services.runs.metrics(input)),
  matrix: reads.input(ReadMatrix).query(({ ctx, input }) => ctx.services.runs.matrix(input)),
  timeline: reads.input(ReadTimeline).query(({ ctx, input }) => ctx.services.runs.timeline(input)),
  durations: reads.input(ReadDurations).query(({ ctx, input }) => ctx.services.runs.durations(input)),
  evaluation: reads.input(ReadEvaluation).query(({ ctx, input }) => ctx.services.runs.evaluation(input)),
  compare: reads.input(CompareRuns).query(({ ctx, input }) => ctx.services.runs.compare(input)),
});

const comparisons = router({
  launch: writes.input(LaunchComparison).mutation(({ ctx, input }) => ctx.services.comparisons.launch(input)),
  list: reads.input(ListComparisons).query(({ ctx, input }) => ctx.services.comparisons.list(input)),
  get: reads.input(ComparisonRef).query(({ ctx, input }) => ctx.services.comparisons.get(input)),
});

const checkpoints = router({
  ofRun: reads.input(ReadCheckpoints).query(({ ctx, input }) => ctx.services.checkpoints.ofRun(input)),
  pin: writes
    .input(PinCheckpoint)
    .mutation(({ ctx, input }) => ctx.services.checkpoints.pin(input, principalWords(ctx.principal))),
  restore: writes
    .input(RestoreRun)
    .mutation(({ ctx, input }) => ctx.services.checkpoints.restore(input, principalWords(ctx.principal))),
  wakeReader: writes
    .input(RunRef)
    .mutation(({ ctx, input }) => ctx.services.checkpoints.wakeReader(input, principalWords(ctx.principal))),
  releaseReader: writes.input(RunRef).mutation(({ ctx, input }) => ctx.services.checkpoints.releaseReader(input)),
});

const servings = router({
  list: reads.query(({ ctx }) => ctx.services.servings.list()),
  start: writes
    .input(CheckpointRef)
    .mutation(({ ctx, input }) => ctx.services.servings.start(input, principalWords(ctx.principal))),
  stop: writes
    .input(ServingRef)
    .mutation(({ ctx, input }) => ctx.services.servings.stop(input, principalWords(ctx.principal))),
});

const rollouts = router({
  get: reads.input(RolloutRef).query(({ ctx, input }) => ctx.services.rollouts.get(input)),
  turns: reads.input(ReadTurns).query(({ ctx, input }) => ctx.services.rollouts.turns(input)),
  tokens: reads.input(ReadTokens).query(({ ctx, input }) => ctx.services.rollouts.tokens(input)),
  artifacts: reads.input(ListArtifacts).query(({ ctx, input }) => ctx.services.rollouts.artifacts(input)),
});

const sandboxes = router({
  ofRollout: reads.input(ListRolloutSandboxes).query(({ ctx, input }) => ctx.services.sandboxes.ofRollout(input)),
  ofRun: reads.input(ListRunSandboxes).query(({ ctx, input }) => ctx.services.sandboxes.ofRun(input)),
  keep: writes
    .input(KeepSandbox)
    .mutation(({ ctx, input }) => ctx.services.sandboxes.keep(input, principalWords(ctx.principal))),
  close: writes
    .input(CloseSandbox)
    .mutation(({ ctx, input }) => ctx.services.sandboxes.close(input, principalWords(ctx.principal))),
});

const schedule = router({
  ofStep: reads.input(ReadSchedule).query(({ ctx, input }) => ctx.services.schedule.ofStep(input)),
  waiting: reads.input(RunRef).query(({ ctx, input }) => ctx.services.schedule.waiting(input)),
  discards: reads.input(RunRef).query(({ ctx, input }) => ctx.services.schedule.discards(input)),
  part: reads.input(ReadPart).query(({ ctx, input }) => ctx.services.schedule.part(input)),
  pools: reads.query(({ ctx }) => ctx.services.schedule.pools()),
});

const simulations = router({
  start: writes.input(StartSimulation).mutation(({ ctx, input }) => ctx.services.simulations.start(input)),
  get: reads.input(SimulationRef).query(({ ctx, input }) => ctx.services.simulations.get(input)),
  cancel: writes.input(SimulationRef).mutation(({ ctx, input }) => ctx.services.simulations.cancel(input)),
});

const dispatch = router({
  change: writes
    .input(ChangeDispatcher)
    .mutation(({ ctx, input }) => ctx.services.dispatch.change(input, principalWords(ctx.principal))),
  actOnStep: writes
    .input(ActOnStep)
    .mutation(({ ctx, input }) => ctx.services.dispatch.actOnStep(input, principalWords(ctx.principal))),
  actOnGroup: writes
    .input(ActOnGroup)
    .mutation(({ ctx, input }) => ctx.services.dispatch.actOnGroup(input, principalWords(ctx.principal))),
  actOnRollout: writes
    .input(ActOnRollout)
    .mutation(({ ctx, input }) => ctx.services.dispatch.actOnRollout(input, principalWords(ctx.principal))),
  quotas: reads.query(({ ctx }) => ctx.services.dispatch.quotas()),
  setQuota: ownerOnly.input(SetQuota).mutation(({ ctx, input }) => ctx.services.dispatch.setQuota(input)),
  setPool: ownerOnly.input(SetPool).mutation(({ ctx, input }) => ctx.services.dispatch.setPool(input)),
});

const driven = router({
  requestBatch: writes.input(RequestBatch).mutation(({ ctx, input }) => ctx.services.driven.requestBatch(input)),
  readBatch: reads.input(ReadBatch).query(({ ctx, input }) => ctx.services.driven.readBatch(input)),
  heartbeat: writes.input(TrainerHeartbeat).mutation(({ ctx, input }) => ctx.services.driven.heartbeat(input)),
  trainer: reads.input(RunRef).query(({ ctx, input }) => ctx.services.driven.trainer(input)),
});

const fleet = router({
  get: reads.query(({ ctx }) => ctx.services.fleet.get()),
  ofRun: reads.input(RunRef).query(({ ctx, input }) => ctx.services.fleet.ofRun(input)),
  addHost: ownerOnly.input(FleetHostSpec).mutation(({ ctx, input }) => ctx.services.fleet.addHost(input)),
  drainHost: ownerOnly.input(DrainFleetHost).mutation(({ ctx, input }) => ctx.services.fleet.drainHost(input)),
  removeHost: ownerOnly.input(FleetHostRef).mutation(({ ctx, input }) => ctx.services.fleet.removeHost(input)),
  log: reads.input(ReadFleetLog).query(({ ctx, input }) => ctx.services.fleet.log(input)),
});

const auth = router({
  me: reads.query(({ ctx }) => ({
    name: ctx.principal.name,
    kind: ctx.principal.kind,
    scopes: [...ctx.principal.scopes],
  })),
  listTokens: ownerOnly.query(({ ctx }) => ctx.services.tokens.list()),
  createToken: ownerOnly.input(CreateToken).mutation(({ ctx, input }) => ctx.services.tokens.create(input)),
  revokeToken: ownerOnly.input(TokenRef).mutation(({ ctx, input }) => ctx.services.tokens.revoke(input)),
});

export const appRouter = router({
  runs,
  comparisons,
  checkpoints,
  servings,
  rollouts,
  sandboxes,
  schedule,
  simulations,
  dispatch,
  driven,
  fleet,
  auth,
  catalogue: router({ get: reads.query(({ ctx }) => ctx.services.catalogue.get()) }),
  system: router({ state: reads.query(({ ctx }) => ctx.services.system.state()) }),
});
export type AppRouter = typeof appRouter;
