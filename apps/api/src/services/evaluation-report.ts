/** Evaluations as numbers with intervals. Pure; the bootstrap's seed is fixed, so that a page shows the same twice. */
import type { EvaluationReport, EvaluationScores } from "@rolldeck/contracts/api/evaluation";
import type { EvaluatedInstance, RunEvaluations, StoredEvaluation } from "@rolldeck/db/reads/read-evaluation";
import { instanceMean, meanEstimate, pairedBootstrap, passEstimate } from "@rolldeck/rl/evaluation-statistics";

/** The server answers nobody else meanwhile: fewer resamples of many pairs, about a twentieth of a second. */
const maxDraws = 5_000_000;
const resamplesOf = (pairs: number): number =>
  Math.max(1_000, Math.min(10_000, Math.floor(maxDraws / Math.max(1, pairs))));

export function evaluationReport(own: RunEvaluations, baseline: RunEvaluations | null): EvaluationReport {
  const { evaluation, taskSets } = own.config;
  const ks = [...new Set(evaluation.passAt)].sort((a, b) => a - b);
  return {
    runId: own.runId,
    samplesPerInstance: evaluation.samplesPerInstance,
    evaluations: own.evaluations.map(({ version, state, instances }) => ({
      version,
      state,
      all: scoresOf(instances, ks),
      taskSets: taskSets.map(({ name }, taskSet) => ({
        taskSet: name,
        scores: scoresOf(
          instances.filter((instance) => instance.taskSet === taskSet),
          ks,
        ),
      })),
    })),
    baseline: baseline && compare(own, baseline),
  };
}

function scoresOf(instances: readonly EvaluatedInstance[], ks: readonly number[]): EvaluationScores {
  const scored = instances.reduce((sum, { rewards }) => sum + rewards.length, 0);
  const settled = instances.reduce((sum, instance) => sum + instance.settled, 0);
  return {
    reward: meanEstimate(instances.map(instanceMean).filter((mean) => mean !== null)),
    success: passEstimate(instances, 1),
    passAt: ks.map((k) => ({ k, estimate: passEstimate(instances, k) })),
    instances: instances.length,
    rollouts: instances.reduce((sum, { rollouts }) => sum + rollouts, 0),
    scored,
    unscored: settled - scored,
  };
}

/** Newest evaluation against newest evaluation, over the instances that both scored. */
function compare(own: RunEvaluations, baseline: RunEvaluations): EvaluationReport["baseline"] {
  const [ours] = own.evaluations;
  const [theirs] = baseline.evaluations;
  if (ours === undefined || theirs === undefined) return null;
  const pairsOf = (score: (instance: EvaluatedInstance) => number | null) => {
    const others = byInstance(baseline, theirs, score);
    return [...byInstance(own, ours, score)].flatMap(([key, value]) => {
      const other = others.get(key);
      return other === undefined ? [] : [[value, other] as const];
    });
  };
  const successes = pairsOf(({ successes: flags }) => share(flags));
  const resamples = resamplesOf(successes.length);
  const options = { seed: 1, resamples };
  return {
    runId: baseline.runId,
    runName: baseline.name,
    version: theirs.version,
    success: pairedBootstrap(successes, options),
    reward: pairedBootstrap(pairsOf(instanceMean), options),
    resamples,
  };
}

/**
 * An instance is the same in two runs when task, data set, options and instance id are: "evaluate-0" is another question in another
 * file, and options say which rows are held out, what is shown of them and how they are scored. One that comes twice in a run
 * counts once.
 */
function byInstance(
  { config }: RunEvaluations,
  { instances }: StoredEvaluation,
  score: (instance: EvaluatedInstance) => number | null,
): Map<string, number> {
  const sources = config.taskSets.map(({ dataset, options }) => [dataset, inOrder(options)]);
  const scores = new Map<string, number>();
  for (const instance of instances) {
    const value = score(instance);
    const key = JSON.stringify([instance.task, sources[instance.taskSet], instance.instanceId]);
    if (value !== null) scores.set(key, value);
  }
  return scores;
}

/** How a config orders its keys means nothing. */
const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { entries: entries.map(([key, inner]) => [key, inOrder(inner)]) };
};

const share = (flags: readonly boolean[]): number | null =>
  flags.length === 0 ? null : flags.filter(Boolean).length / flags.length;
