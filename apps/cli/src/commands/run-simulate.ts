/** Reads what a simulation needs from the server, plays it here, and prints the prediction. */
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { Catalogue, SystemState } from "@rolldeck/contracts/api/system";
import { InputError } from "@rolldeck/contracts/errors";
import { type ResourceCounts, resources } from "@rolldeck/contracts/plan";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { type Advice, advising } from "@rolldeck/dispatch/simulator/advise";
import { median } from "@rolldeck/dispatch/simulator/median";
import { type RecordedRun, type RunScenario, runScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import type { Gpu } from "@rolldeck/dispatch/simulator/simulation-input";
import { type SplitAdvice, splitAdvice } from "@rolldeck/dispatch/simulator/split-advice";
import { tasks } from "@rolldeck/tasks/registry";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect } from "./connection.ts";
import { print } from "./output.ts";
import { readText } from "./read-text.ts";
import { type Report, reportJson, reportText } from "./simulation-report.ts";

export interface SimulateFlags extends ConnectionFlags {
  readonly file?: string;
  readonly fromRun?: string;
  readonly init: number;
  readonly run: number;
  readonly evaluate: number;
  readonly spread: number;
  readonly update?: number;
  readonly engine?: Gpu;
  readonly seeds?: number;
  readonly limit?: number;
  readonly json?: boolean;
}

/** A step with more rollouts than this is played half as often: it costs as much. */
const largeStep = 1_024;
/** Seconds after which no further simulation is begun. */
const defaultLimit = 300;

export async function runSimulate(flags: SimulateFlags): Promise<void> {
  const { rolldeck } = connect(flags);
  const [catalogue, system, recorded] = await Promise.all([
    rolldeck.getCatalogue(),
    rolldeck.getSystem(),
    flags.fromRun === undefined ? null : readRecorded(rolldeck, flags.fromRun),
  ]);
  const config = await configOf(rolldeck, flags, recorded);
  refuseEngineWithoutTokens(flags, recorded);
  // A line that is written over again is for a terminal alone.
  const tell = process.stderr.isTTY ? (line: string) => void process.stderr.write(line) : () => {};
  const report = simulateReport(config, recorded, { flags, catalogue, system }, tell);
  print(flags.json === true, reportJson(report), () => reportText(report));
}

interface Recorded extends RecordedRun {
  readonly config: RunConfig;
}

async function readRecorded(rolldeck: Rolldeck, runId: string): Promise<Recorded> {
  const { config } = await rolldeck.getRun(runId);
  const purpose = config.kind === "train" ? "train" : "evaluate";
  const durations = await rolldeck.readDurations({ runId, purpose });
  return { config, durations, taskSets: config.taskSets.map(({ name }) => name) };
}

async function configOf(rolldeck: Rolldeck, { file }: SimulateFlags, recorded: Recorded | null): Promise<RunConfig> {
  if (file === undefined) {
    if (recorded !== null) return recorded.config;
    throw new CommandFailure("name a config with -f run.yaml, or a run with --from-run");
  }
  const check = await rolldeck.checkConfig(readText(file));
  if (check.config !== null) return check.config;
  // Every field with its fix, as launch prints them.
  throw new InputError(
    check.issues.map(({ path, message, fix }) => ({ path, message, ...(fix === null ? {} : { fix }) })),
  );
}

function refuseEngineWithoutTokens({ engine }: SimulateFlags, recorded: Recorded | null): void {
  if (engine === undefined) return;
  const tokens = (recorded?.durations.rollouts.sampledTokens ?? []).some((count) => count > 0);
  if (!tokens) throw new CommandFailure("--engine samples recorded tokens: name a run that has some with --from-run");
}

export interface SimulateFacts {
  readonly flags: Pick<SimulateFlags, "init" | "run" | "evaluate" | "spread" | "update" | "seeds" | "limit" | "engine">;
  readonly catalogue: Pick<Catalogue, "taskSets" | "backends">;
  readonly system: { readonly pools: readonly Pick<SystemState["pools"][number], "resource" | "size">[] };
}

/** @param tell takes progress for people, not for programs */
export function simulateReport(
  config: RunConfig,
  recorded: RecordedRun | null,
  { flags, catalogue, system }: SimulateFacts,
  tell: (line: string) => void,
): Report {
  const sandboxOf = (name: string) => catalogue.taskSets.find((set) => set.name === name)?.sandbox ?? "none";
  const run: RunScenario = {
    config,
    pools: poolsOf(system, config),
    taskSandboxes: config.taskSets.map(({ name }) => sandboxOf(name)),
    gradedInPlace: config.taskSets.map(({ name }) => gradesInPlace(name)),
    recorded,
    assumed: {
      ms: { init: flags.init * 1000, run: flags.run * 1000, evaluate: flags.evaluate * 1000 },
      deviation: flags.spread,
    },
    colocated: catalogue.backends.some(({ name, overlap }) => name === config.backend.name && !overlap),
    ...(flags.engine === undefined ? {} : { gpu: flags.engine }),
    ...(flags.update === undefined ? {} : { trainer: { msPerStep: flags.update * 1000 } }),
  };
  const scenario = runScenario(run);
  const rollouts = config.algorithm.groupsPerStep * config.algorithm.groupSize;
  const seeds = Math.round(flags.seeds ?? (rollouts > largeStep ? 2 : 4));
  const advice = toTheEnd(
    advising({ scenario: scenario.of, seeds }),
    { seeds, limitSeconds: flags.limit ?? defaultLimit },
    tell,
  );
  const input = scenario.of(1);
  // How to split devices is asked of devices that can be split.
  const apart = input.trainer && { ...input, trainer: { ...input.trainer, colocated: false } };
  const split: SplitAdvice | null = config.kind === "train" && apart ? splitAdvice(apart) : null;
  const { basis, rollouts: seen } = scenario;
  return {
    kind: config.kind,
    basis,
    rollouts: seen,
    seeds,
    advice,
    split,
    actualStepMs: median(recorded?.durations.steps.stepMs ?? []),
  };
}

function toTheEnd(
  steps: ReturnType<typeof advising>,
  { seeds, limitSeconds }: { readonly seeds: number; readonly limitSeconds: number },
  tell: (line: string) => void,
): Advice {
  const startedAt = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) {
      tell("\r\u001b[K");
      return step.value;
    }
    const took = Math.round((performance.now() - startedAt) / 1000);
    if (took >= limitSeconds) {
      tell("\r\u001b[K");
      throw new CommandFailure(
        `${step.value.done} simulations took ${took} s, and it was not over: play each setting once with --seeds 1, or give it more time with --limit`,
      );
    }
    tell(`\r${step.value.done} simulations, ${took} s; each setting takes ${seeds}, and there are up to 40`);
  }
}

/** What the server has; a pool that it does not name is as large as the run's bounds ask for. */
function poolsOf({ pools }: SimulateFacts["system"], { dispatcher }: RunConfig): ResourceCounts {
  const { init, run, evaluate } = dispatcher.bounds;
  const wanted = { sandbox: init + run + evaluate, initSlot: init, runSlot: run, gradeSlot: evaluate, gpu: 1 };
  for (const resource of resources) {
    const known = pools.find((pool) => pool.resource === resource);
    if (known !== undefined) wanted[resource] = known.size;
  }
  return wanted;
}

const gradesInPlace = (name: string): boolean =>
  Object.entries(tasks).some(([known, task]) => known === name && "gradeInPlace" in task && task.gradeInPlace === true);
