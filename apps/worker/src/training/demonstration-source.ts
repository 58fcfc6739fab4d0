/** The demonstrations of a run's tasks as training data, and the name that stands for all that goes into a warm start. */
import { createHash } from "node:crypto";
import { demonstrationDatums } from "@rolldeck/agent/core/demonstrations";
import { InputError } from "@rolldeck/contracts/errors";
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { dialectNamed } from "../dialect-named.ts";
import { taskTools, toolSpecs } from "../rollout-task.ts";
import type { WorkerContext } from "../worker-context.ts";

export type WarmStartSpec = NonNullable<RunConfig["model"]["warmStart"]>;
export interface DemonstrationSource {
  readonly spec: WarmStartSpec;
  /** Hash of everything that shapes the data and the training. */
  readonly contentHash: string;
  /** Rows of supervised step `step`, from 1. Deterministic. */
  batch(step: number): TrainingDatum[];
}

/** Raised when the warm start's code changes what it makes. */
const codeVersion = 2;
/** Batches never share a seed within a warm start. */
const seedStride = 1_000_003;

/** @throws InputError when no task of the run has demonstrations */
export async function demonstrationSource(context: WorkerContext, config: RunConfig): Promise<DemonstrationSource> {
  const spec = config.model.warmStart;
  const shares = await demonstrators(context, config);
  if (spec === null || shares.length === 0) {
    throw new InputError([{ path: "model.warmStart", message: "none of the run's tasks has demonstrations" }]);
  }
  const tokenizer = await context.tokenizers.load(config.model);
  const { agent } = config;
  const dialect = dialectNamed(agent.dialect);
  const demonstrations = (step: number) =>
    shares.flatMap(({ task, share }) =>
      (task.demonstrations?.(config.seed * seedStride + step, Math.ceil(spec.demosPerStep * share)) ?? []).map(
        (demonstration) => ({ task, demonstration }),
      ),
    );
  return {
    spec,
    contentHash: hashOf({
      codeVersion,
      spec,
      seed: config.seed,
      model: await context.tokenizers.contentHash(config.model),
      agent: { dialect: agent.dialect, describeTools: agent.describeTools, maxOutputBytes: agent.maxOutputBytes },
      // The first batch stands for the rest: they come from the same code.
      demonstrations: demonstrations(1).map(({ demonstration }) => demonstration),
      shares: shares.map(({ task, share }) => [task.name, share]),
    }),
    batch: (step) =>
      demonstrations(step).flatMap(({ task, demonstration }) =>
        demonstrationDatums(demonstration, {
          tokenizer,
          dialect,
          agent,
          tools: toolSpecs(taskTools(context.tools, task)),
        }),
      ),
  };
}

export const warmStartName = (source: DemonstrationSource): string => `warm-${source.contentHash.slice(0, 24)}`;

/** Tasks with demonstrations and their share by weight. */
async function demonstrators(
  context: WorkerContext,
  config: RunConfig,
): Promise<{ readonly task: Task; readonly share: number }[]> {
  const tasks = await context.openedTasks.all(config);
  const sets = tasks.flatMap((task, taskSet) =>
    task.demonstrations === undefined ? [] : [{ task, weight: config.taskSets[taskSet]?.weight ?? 1 }],
  );
  const total = sets.reduce((sum, { weight }) => sum + weight, 0);
  return sets.map(({ task, weight }) => ({ task, share: weight / total }));
}

const hashOf = (content: unknown): string => createHash("sha256").update(JSON.stringify(content)).digest("hex");
