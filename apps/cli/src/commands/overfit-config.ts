/** `run launch --overfit`: a config turned into a preflight of itself. */
import { mergeConfig } from "@rolldeck/contracts/merge-config";
import { parse } from "yaml";
import { CommandFailure } from "./command-failure.ts";

const defaultSteps = 20;

/**
 * @param config an object, or YAML or JSON text
 * @param steps as it was typed; true = nothing was
 * @throws CommandFailure
 */
export function overfitConfig(config: unknown, steps: string | true): unknown {
  const count = steps === true ? defaultSteps : Number(steps);
  if (!Number.isInteger(count) || count < 5) throw new CommandFailure("--overfit takes a number of steps, at least 5");
  const base = typeof config === "string" ? parsed(config) : config;
  if (typeof base !== "object" || base === null || Array.isArray(base))
    throw new CommandFailure("the config is not a mapping of keys to values");
  return mergeConfig(base, {
    preflight: "overfit",
    budget: { steps: count },
    evaluation: { every: 0, samples: 0 },
    // Nothing is evaluated that a best one could be chosen by.
    checkpoints: { keepBest: null, ...(needsEveryCheckpoint(base) ? {} : { every: count }) },
  });
}

/** Tinker servers that others run are recovered from a checkpoint of every step. */
const needsEveryCheckpoint = (config: object): boolean =>
  "backend" in config &&
  typeof config.backend === "object" &&
  config.backend !== null &&
  "name" in config.backend &&
  config.backend.name === "tinker";

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new CommandFailure(`the file is not valid YAML: ${why}`, { cause });
  }
}
