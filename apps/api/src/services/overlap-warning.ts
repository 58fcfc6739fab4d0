/**
 * Warns who asks for a policy that samples during updates of a backend that can't do both at once, with what the simulator says of
 * it: over stages that were recorded of a run like it, else over assumed ones.
 */
import { findBackend } from "@rolldeck/backends/registry";
import type { ConfigCheck, ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { findAlikeRun } from "@rolldeck/db/reads/find-alike-run";
import { readDurations } from "@rolldeck/db/reads/read-durations";
import { readPoolSettings } from "@rolldeck/db/reconcile/quotas";
import { dispatcherNamed } from "@rolldeck/dispatch/registry";
import type { OverlapEstimate } from "@rolldeck/dispatch/simulator/overlap-estimate";
import type { Pool } from "pg";
import type { z } from "zod";
import type { OverlapEstimates } from "../simulation/overlap-estimates.ts";
import { assumed, runToPlay, type SimulatedTaskFacts } from "../simulation/run-to-play.ts";
import type { OverlapTask } from "../simulation/thread-message.ts";

export interface OverlapSources {
  readonly pool: Pool;
  readonly estimates: Pick<OverlapEstimates, "of">;
  readonly factsOf: (task: string) => SimulatedTaskFacts | null;
}

/** A step with more rollouts than this is played on one seed instead of two: it costs as much. */
const largeStep = 256;
const recordedRollouts = 1_024;
/** Of an update that nobody has seen yet. */
const assumedUpdate = { msPerStep: assumed.ms.run };

/** The check itself says that there is no such task. */
const unknownTask: SimulatedTaskFacts = { sandbox: "none", gradeInPlace: false };

/** A check that passed, with the warning where one is due. */
export async function withOverlapWarning(check: ConfigCheck, sources: OverlapSources): Promise<ConfigCheck> {
  const { config } = check;
  if (config === null || !samplesDuringUpdates(config) || overlaps(config.backend)) return check;
  const alike = await findAlikeRun(sources.pool, config);
  const estimate = await sources.estimates.of(await taskOf(config, alike, sources));
  return { ...check, warnings: [...check.warnings, overlapWarning(estimate, alike)] };
}

/** Each has devices of its own: by its kind of server, or because the run's workers on the fleet are split. */
const overlaps = ({ name, fleet }: RunConfig["backend"]): boolean =>
  findBackend(name)?.overlap !== false || fleet?.layout === "split";

const samplesDuringUpdates = ({ kind, stepSource, dispatcher, budget }: RunConfig): boolean =>
  kind === "train" &&
  budget.steps > 1 &&
  stepSource === "planned" &&
  dispatcher.maxStaleness > 0 &&
  dispatcherNamed(dispatcher.name)?.overlapsUpdates === true;

async function taskOf(
  config: RunConfig,
  alike: string | null,
  { pool, factsOf }: OverlapSources,
): Promise<OverlapTask> {
  const [durations, sizes] = await Promise.all([
    alike === null ? null : readDurations(pool, { runId: alike, purpose: "train", limit: recordedRollouts }),
    readPoolSettings(pool),
  ]);
  const seen = durations?.steps.updateMs.some((ms) => ms > 0) ?? false;
  // What a run is called changes nothing of what it takes.
  const nameless = { ...config, name: "", project: "", tags: [] };
  const pools = Object.fromEntries(sizes.map(({ resource, size }) => [resource, size]));
  const run = runToPlay({ config: nameless, pools }, durations, (task) => factsOf(task) ?? unknownTask);
  return {
    overlap: { ...run, ...(seen ? {} : { trainer: assumedUpdate }) },
    seeds: config.algorithm.groupsPerStep * config.algorithm.groupSize > largeStep ? 1 : 2,
  };
}

const shared = "this backend trains and samples on the same device, so each slows the other down";

/** @param alike the run whose stages were played; null: assumed ones were */
export function overlapWarning(estimate: OverlapEstimate | null, alike: string | null): z.output<typeof ConfigIssue> {
  const path = "dispatcher.name";
  if (estimate === null) {
    const fix = "ask `rolldeck simulate -f run.yaml` what it gains, or use pipeline";
    return { path, message: `${shared}; it could not be simulated in time what async gains`, fix };
  }
  const { change, asyncMs, pipelineMs } = estimate;
  const share = Math.round(Math.abs(change.mean) * 100);
  const word = change.mean < 0 ? "faster" : "slower";
  const compared = share === 0 ? "async is as fast as pipeline" : `async is about ${share} % ${word} than pipeline`;
  const seconds = (ms: number): string => `${ms < 10_000 ? (ms / 1_000).toFixed(1) : Math.round(ms / 1_000)} s`;
  const predicted = `predicted ${seconds(asyncMs)} per step against ${seconds(pipelineMs)}`;
  return {
    path,
    message: `${shared}: ${compared}, ${predicted}, simulated over ${basisWords(estimate, alike)}`,
    fix: share > 0 && change.mean < 0 ? null : "use pipeline",
  };
}

const basisWords = ({ basis, rollouts }: OverlapEstimate, alike: string | null): string =>
  basis === "recorded"
    ? `${rollouts} rollouts of run ${alike}`
    : "assumed times (init 5 s, run 60 s, evaluate 10 s, update 60 s), as no run like it was recorded";
