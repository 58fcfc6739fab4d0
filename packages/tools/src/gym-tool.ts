/**
 * A Gym-style environment as one tool: each call is a step. Invariants: every rollout has an environment of its own, made and reset
 * on its first call with the instance's seed; a step of an environment that is done is an error; when it is done, the rollout
 * ends, and the answer is the environment's word, not the model's. Its state lives in the process, so a rollout that stepped
 * can't be continued elsewhere, and a step never runs twice.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { defineTool } from "./define-tool.ts";

export interface GymStep {
  readonly observation: string;
  readonly reward: number;
  readonly done: boolean;
  /** What the rollout's verifier gets; absent: `{"reward": <sum>, "steps": <count>}` as JSON. */
  readonly result?: string;
}
export interface GymEnvironment<A> {
  /** Deterministic in the seed. @returns the first observation */
  reset(seed: number): string | Promise<string>;
  /** @throws when the action can't be taken: told to the model, and no step is counted */
  step(action: A, signal: AbortSignal): GymStep | Promise<GymStep>;
}
export interface GymDefinition<A> {
  readonly name: string;
  readonly description: string;
  readonly action: z.ZodObject & z.ZodType<A>;
  make(): GymEnvironment<A>;
}

/** What an environment wants of the instance's state. */
const Seeded = z.object({ seed: z.int().default(0) });

/** What the task's first message can show: the first observation of an environment with that seed. */
export const firstObservation = async <A>(definition: Pick<GymDefinition<A>, "make">, seed: number): Promise<string> =>
  definition.make().reset(seed);

interface Episode<A> {
  readonly environment: GymEnvironment<A>;
  reward: number;
  steps: number;
  done: boolean;
}

export function gymTool<A>(definition: GymDefinition<A>): Tool {
  // Weak: an episode goes with its rollout.
  const episodes = new WeakMap<object, Promise<Episode<A>>>();
  const episodeOf = (context: ToolContext): Promise<Episode<A>> => {
    const rollout = context.rollout ?? context.instance;
    const known = episodes.get(rollout);
    if (known) return known;
    const opened = open(definition, context.instance);
    episodes.set(rollout, opened);
    // One that could not be reset is tried anew.
    opened.catch(() => episodes.delete(rollout));
    return opened;
  };
  const tool = defineTool({
    name: definition.name,
    description: definition.description,
    arguments: definition.action,
    idempotent: false,
    call: async (action, context) => takeStep(await episodeOf(context), action, context.signal),
  });
  return { ...tool, stateful: true };
}

/** @throws BoundaryError("infrastructure"): an environment that can't begin is no observation, and no 0 */
async function open<A>({ make }: Pick<GymDefinition<A>, "make">, instance: JsonObject): Promise<Episode<A>> {
  try {
    const environment = make();
    await environment.reset(Seeded.parse(instance).seed);
    return { environment, reward: 0, steps: 0, done: false };
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new BoundaryError("infrastructure", "gym_reset", `the environment could not be reset: ${words}`, { cause });
  }
}

async function takeStep<A>(episode: Episode<A>, action: A, signal: AbortSignal): Promise<ToolOutcome> {
  if (episode.done) return refusal("the episode is over");
  const step = await episode.environment.step(action, signal);
  if (!Number.isFinite(step.reward)) {
    // The step was made: what it was worth is lost, and so is the episode.
    episode.done = true;
    throw new BoundaryError("infrastructure", "gym_reward", "the environment gave a reward that is no number");
  }
  episode.steps += 1;
  episode.reward += step.reward;
  episode.done = step.done;
  const output = step.reward === 0 ? step.observation : `${step.observation}\nreward: ${step.reward}`;
  if (!step.done) return { output };
  return { output, finalAnswer: step.result ?? JSON.stringify({ reward: episode.reward, steps: episode.steps }) };
}

const refusal = (message: string): ToolOutcome => ({ output: message, error: { code: "gym", message } });
