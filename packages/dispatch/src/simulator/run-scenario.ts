/**
 * A run as something to simulate: its config over durations that were recorded of it (or of another run of the same task sets),
 * else over durations that are assumed. Steps are alike, so one of them stands for all; evaluations are left out of a training
 * run's steps.
 */
import type { Durations } from "@rolldeck/contracts/api/durations";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { ResourceCounts, RunSnapshot } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { dispatcherNamed } from "../registry.ts";
import {
  assumedDurations,
  type DurationFit,
  drawWork,
  expectedOf,
  fitDurations,
  type RecordedStage,
} from "./durations.ts";
import { median } from "./median.ts";
import { replayWork } from "./replay-work.ts";
import type { WorkOf } from "./rollout-work.ts";
import { type Gpu, noOverheads, type Overheads, type SimulationInput, type Trainer } from "./simulation-input.ts";

export interface AssumedDurations {
  /** Mean of each stage, milliseconds. */
  readonly ms: Readonly<Record<Stage, number>>;
  /** Of the logarithm. */
  readonly deviation: number;
}

export interface RecordedRun {
  readonly durations: Durations;
  /** Names of its task sets, in its config's order. */
  readonly taskSets: readonly string[];
}

export interface RunScenario {
  readonly config: RunConfig;
  readonly pools: ResourceCounts;
  readonly taskSandboxes: RunSnapshot["taskSandboxes"];
  readonly gradedInPlace?: RunSnapshot["gradedInPlace"];
  readonly recorded: RecordedRun | null;
  readonly assumed: AssumedDurations;
  /** Absent: as recorded, else none. */
  readonly trainer?: Trainer;
  /** Its updates and its sampling share their devices. Default false. */
  readonly colocated?: boolean;
  /** With it the run stage samples recorded tokens; absent: it takes what it took. */
  readonly gpu?: Gpu;
  readonly overheads?: Overheads;
}

export interface Scenario {
  readonly of: (seed: number) => SimulationInput;
  readonly basis: "recorded" | "assumed";
  /** Rollouts that were recorded. */
  readonly rollouts: number;
}

export function runScenario(run: RunScenario): Scenario {
  const known = run.recorded === null ? null : recordedOf(run.config, run.recorded);
  const sets = run.config.taskSets.length;
  const fitted = known === null ? null : fitDurations(known.stages, sets);
  const fit = fitted ?? assumedDurations(run.assumed.ms, run.assumed.deviation, sets);
  const isTrain = run.config.kind === "train";
  const config: RunConfig = isTrain
    ? {
        ...run.config,
        evaluation: { ...run.config.evaluation, samples: 0 },
        // Hard budgets end a run, not a step.
        budget: { ...run.config.budget, steps: 1, hours: null, tokens: null },
        stepSource: "planned",
      }
    : run.config;
  const rates = run.trainer ?? (isTrain && run.recorded ? recordedTrainer(run.recorded.durations) : undefined);
  const trainer = rates && run.colocated ? { ...rates, colocated: true } : rates;
  const input: Omit<SimulationInput, "work" | "expected" | "seed"> = {
    config,
    pools: run.pools,
    taskSandboxes: run.taskSandboxes,
    taskSizes: run.config.taskSets.map((_, at) => ({ train: known?.instances[at] || null, evaluate: null })),
    ...(run.gradedInPlace ? { gradedInPlace: run.gradedInPlace } : {}),
    ...(isTrain && dispatcherNamed(config.dispatcher.name)?.keepsEnvironments ? { environmentsOpen: true } : {}),
    ...(trainer ? { trainer } : {}),
    ...(run.gpu ? { gpu: run.gpu } : {}),
    overheads: run.overheads ?? { ...noOverheads, wakeMs: planEveryMs(config, fit) },
  };
  const sampling = run.recorded === null ? null : samplingOf(run.recorded.durations);
  const limitsMs = config.dispatcher.stageTimeoutMs;
  return {
    basis: fitted === null ? "assumed" : "recorded",
    rollouts: fitted === null ? 0 : (known?.stages.length ?? 0) / stages.length,
    of: (seed) => {
      const drawn =
        fitted === null || known === null ? drawWork(fit, seed, limitsMs) : replay(known.stages, fit, seed, config);
      const work = run.gpu && sampling !== null ? sampled(drawn, sampling) : drawn;
      return { ...input, work, expected: (instance) => expectedOf(fit, seed, instance), seed };
    },
  };
}

/** Stages by the scenario's own task sets, whose instances are counted from 0. */
function recordedOf(config: RunConfig, { durations, taskSets }: RecordedRun) {
  const { rollouts } = durations;
  const indices = config.taskSets.map(() => new Map<number, number>());
  const recorded: RecordedStage[] = [];
  for (const [at, from] of rollouts.taskSet.entries()) {
    const taskSet = placeOf(config, taskSets[from], from);
    const known = indices[taskSet];
    const original = rollouts.instanceIndex[at];
    if (known === undefined || original === undefined) continue;
    const instanceIndex = known.get(original) ?? known.size;
    known.set(original, instanceIndex);
    const ms = { init: rollouts.initMs[at], run: rollouts.runMs[at], evaluate: rollouts.evaluateMs[at] };
    const reset = rollouts.reset[at] ?? false;
    for (const stage of stages) recorded.push({ taskSet, instanceIndex, stage, ms: ms[stage] ?? 0, reset });
  }
  return { stages: recorded, instances: indices.map(({ size }) => size) };
}

/** A task that stands there twice, with other options, is told apart by its place. */
function placeOf({ taskSets }: RunConfig, name: string | undefined, place: number): number {
  return taskSets[place]?.name === name ? place : taskSets.findIndex((set) => set.name === name);
}

/** Steps larger than this are planned in ticks: a plan costs what all of its rollouts cost, and thousands end within a step. */
const largeStep = 512;
const ticksPerStep = 600;

/** A small part of what a step takes at least. */
function planEveryMs({ algorithm, dispatcher }: RunConfig, fit: DurationFit): number {
  const rollouts = algorithm.groupsPerStep * algorithm.groupSize;
  const runMs = Math.exp(fit[0]?.run.mean ?? 0);
  return rollouts <= largeStep ? 0 : (runMs * rollouts) / dispatcher.bounds.run / ticksPerStep;
}

/** The median update: the first ones load and compile. */
function recordedTrainer({ steps }: Durations): Trainer | undefined {
  const msPerStep = median(steps.updateMs.filter((ms) => ms > 0));
  return msPerStep === null ? undefined : { msPerStep };
}

interface Sampling {
  /** Tokens per millisecond of the run stage, and the share of that stage that the model took. */
  readonly tokensPerRunMs: number;
  readonly modelShare: number;
  readonly turns: number;
}

function samplingOf({ rollouts }: Durations): Sampling | null {
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const [runMs, tokens] = [sum(rollouts.runMs), sum(rollouts.sampledTokens)];
  if (runMs <= 0 || tokens <= 0) return null;
  return {
    tokensPerRunMs: tokens / runMs,
    modelShare: Math.min(1, sum(rollouts.modelMs) / runMs),
    turns: Math.max(1, Math.round(sum(rollouts.turns) / rollouts.turns.length)),
  };
}

function replay(recorded: readonly RecordedStage[], fit: DurationFit, seed: number, config: RunConfig): WorkOf {
  const { stageTimeoutMs: limitsMs, overSample } = config.dispatcher;
  return replayWork({ recorded, fit, seed, limitsMs, groupSize: config.algorithm.groupSize + overSample.rollouts });
}

/** A long run stage is one that samples much: tokens go with its length, and its tools take the rest. */
function sampled(work: WorkOf, { tokensPerRunMs, modelShare, turns }: Sampling): WorkOf {
  return (key) => {
    const drawn = work(key);
    const sampling = { tokens: drawn.runMs * tokensPerRunMs, turns };
    return { ...drawn, runMs: drawn.runMs * (1 - modelShare), sampling };
  };
}
