/** How much a config will sample, before it is launched: for the form. Upper bounds, no forecast. */
import type { RunConfig } from "@rolldeck/contracts/run-config";

export interface RunEstimate {
  /** Rollouts of all steps and evaluations, each counted once however often it is tried. */
  readonly rollouts: number;
  /** Decimal text: may pass 2^53. */
  readonly maxSampledTokens: string;
  /** How the numbers came about, in a sentence. */
  readonly basis: string;
}

export function estimate(config: RunConfig): RunEstimate {
  const { groups, groupSize } = startedPerStep(config);
  const steps = config.kind === "train" ? config.budget.steps : 0;
  const evaluations = evaluationCount(config);
  const evaluated = config.evaluation.samples * config.evaluation.samplesPerInstance;
  const rollouts = steps * groups * groupSize + evaluations * evaluated;
  const perRollout = maxTokensPerRollout(config);
  const unbounded = BigInt(rollouts) * BigInt(perRollout);
  const { tokens } = config.budget;
  const capped = tokens !== null && BigInt(tokens) < unbounded;
  const parts = [
    steps > 0 ? `${steps} steps × ${groups} groups × ${groupSize} rollouts` : null,
    evaluations > 0 ? `${evaluations} evaluation${evaluations === 1 ? "" : "s"} × ${evaluated} rollouts` : null,
  ].filter((part) => part !== null);
  const limit = capped ? `; the budget ends the run at ${tokens} tokens` : "";
  return {
    rollouts,
    maxSampledTokens: String(capped ? tokens : unbounded),
    basis: `${parts.join(" + ") || "nothing to sample"}, at most ${perRollout} sampled tokens each${limit}`,
  };
}

/** At most: what is started beyond what a step needs and what may be replaced included. An outside trainer names its own. */
function startedPerStep({ algorithm, dispatcher, stepSource }: RunConfig) {
  if (stepSource === "driven") return { groups: algorithm.groupsPerStep, groupSize: algorithm.groupSize };
  const { overSample, zeroVariance } = dispatcher;
  const replaced = zeroVariance.mode === "replace" ? zeroVariance.maxReplaced : 0;
  return {
    groups: algorithm.groupsPerStep + overSample.groups + replaced,
    groupSize: algorithm.groupSize + overSample.rollouts,
  };
}

/** At version 0, every N versions and at the end. */
function evaluationCount({ kind, stepSource, evaluation, budget }: RunConfig): number {
  if (evaluation.samples === 0 || stepSource === "driven") return 0;
  if (kind === "evaluate") return 1;
  if (evaluation.every === 0) return 2;
  const atTheEnd = budget.steps % evaluation.every === 0 ? 0 : 1;
  return 1 + Math.floor(budget.steps / evaluation.every) + atTheEnd;
}

function maxTokensPerRollout({ taskSets, agent }: RunConfig): number {
  const turns = taskSets.reduce((most, { maxTurns }) => Math.max(most, maxTurns ?? agent.maxTurns), 0);
  // A tool may restart the context: only a turn is bounded by it.
  return turns * Math.min(agent.sampling.maxTokensPerTurn, agent.maxContextTokens);
}
