/** The demonstrations of a run's tasks as training data, and the name that stands for all that goes into a warm start. */
import { createHash } from "node:crypto";
import { demonstrationDatums } from "@rolldeck/agent/core/demonstrations";
import { InputError } from "@rolldeck/contracts/errors";
import type { TrainingDatum } from "@rolldeck/contracts/ports/backend";
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import { dialectNamed } from "../dialect-named.ts";
import { toolSpecs } from "../rollout-task.ts";
import { rolloutTools } from "../rollout-tools.ts";
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
const codeVersion = 3;
/** Batches never share a seed within a warm start. */
const seedStride = 1_000_003;

/** @throws InputError when no task of the run has demonstrations; whatever opening the run's tools throws */
export async function demonstrationSource(
  context: WorkerContext,
  config: RunConfig,
  signal: AbortSignal,
): Promise<DemonstrationSource> {
  const spec = config.model.warmStart;
  const shares = await demonstrators(context, config, signal);
  if (spec === null || shares.length === 0) {
    throw new InputError([{ path: "model.warmStart", message: "none of the run's tasks has demonstrations" }]);
  }
  const tokenizer = await context.tokenizers.load(config.model);
  const { agent } = config;
  const dialect = dialectNamed(agent.dialect);
  const demonstrations = (step: number) =>
    shares.flatMap(({ task, tools, share }) =>
      (task.demonstrations?.(config.seed * seedStride + step, Math.ceil(spec.demosPerStep * share)) ?? []).map(
        (demonstration) => ({ tools, demonstration }),
      ),
    );
  return {
    spec,
    contentHash: hashOf({
      codeVersion,
      spec,
      seed: config.seed,
      model: await context.tokenizers.contentHash(config.model),
      agent: {
        dialect: agent.dialect,
        describeTools: agent.describeTools,
        maxOutputBytes: agent.maxOutputBytes,
        maxOutputTokens: agent.maxOutputTokens,
      },
      // The first batch stands for the rest: they come from the same code.
      demonstrations: demonstrations(1).map(({ demonstration }) => demonstration),
      // Prompts that don't describe tools don't depend on them.
      shares: shares.map(({ task, tools, share }) => [task.name, share, agent.describeTools ? tools : null]),
    }),
    batch: (step) =>
      demonstrations(step).flatMap(({ tools, demonstration }) =>
        demonstrationDatums(demonstration, { tokenizer, dialect, agent, tools }),
      ),
  };
}

export const warmStartName = (source: DemonstrationSource): string => `warm-${source.contentHash.slice(0, 24)}`;

interface Demonstrator {
  readonly task: Task;
  /** What its rollouts' prompts describe, tools of MCP servers included. */
  readonly tools: readonly ToolSpec[];
  readonly share: number;
}

/** Tasks with demonstrations and their share by weight. */
async function demonstrators(context: WorkerContext, config: RunConfig, signal: AbortSignal): Promise<Demonstrator[]> {
  const tasks = await context.openedTasks.all(config);
  const sets = tasks.flatMap((task, taskSet) =>
    task.demonstrations === undefined ? [] : [{ task, weight: config.taskSets[taskSet]?.weight ?? 1 }],
  );
  const total = sets.reduce((sum, { weight }) => sum + weight, 0);
  const found: Demonstrator[] = [];
  for (const { task, weight } of sets) {
    const { tools, close } = await rolloutTools(context, task, config, signal);
    found.push({ task, tools: toolSpecs(tools), share: weight / total });
    await close();
  }
  return found;
}

const hashOf = (content: unknown): string => createHash("sha256").update(JSON.stringify(content)).digest("hex");
