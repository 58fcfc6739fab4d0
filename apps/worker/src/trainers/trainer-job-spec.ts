/** What a cluster is told of a run's trainer. Pure. The command is the operator's as it stands; the run reaches it as variables. */
import type { ListedTrainer } from "@rolldeck/backends/trainers/read-trainers";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { RayJobSpec } from "@rolldeck/fleet/ray/ray-jobs";

export function trainerJobSpec(
  trainer: ListedTrainer,
  run: { readonly runId: string; readonly config: RunConfig },
  job: { readonly submissionId: string; readonly attempt: number },
): RayJobSpec {
  const { model, agent, algorithm, budget, seed } = run.config;
  const variables: Readonly<Record<string, string>> = {
    ...trainer.variables,
    ROLLDECK_URL: trainer.rolldeck.url,
    ROLLDECK_TOKEN: trainer.rolldeck.token,
    ROLLDECK_RUN: run.runId,
    ROLLDECK_MODEL: model.name,
    ROLLDECK_STEPS: String(budget.steps),
    ROLLDECK_GROUPS: String(algorithm.groupsPerStep),
    ROLLDECK_SAMPLES: String(algorithm.groupSize),
    ROLLDECK_TEMPERATURE: String(agent.sampling.temperature),
    ROLLDECK_LEARNING_RATE: String(algorithm.learningRate),
    ROLLDECK_SEED: String(seed),
  };
  return {
    submissionId: job.submissionId,
    entrypoint: trainer.entrypoint,
    runtimeEnv: { ...trainer.runtimeEnv, env_vars: variables },
    metadata: { run: run.runId, attempt: String(job.attempt) },
    entrypointResources: trainer.resources,
  };
}
