import type { RunConfig } from "@rolldeck/contracts/run-config";

/** The run's config, to go on from what it had learned: a checkpoint of it instead of a warm start. Pure. */
export const onFrom = (config: RunConfig, run: string, version: number): RunConfig => ({
  ...config,
  model: { ...config.model, warmStart: null, startFrom: { run, version } },
});
