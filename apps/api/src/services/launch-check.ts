/** Everything that a launch of a config has to pass: the schema, this server's catalogue, its task sets, other runs that it names. What the fleet lacks is a warning. */
import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import type { OpenedTasks } from "@rolldeck/tasks/opened-tasks";
import type { Pool } from "pg";
import type { CheckCatalogue } from "./catalogue-issues.ts";
import { checkConfig } from "./check-config.ts";
import { withFleetWarning } from "./fleet-warning.ts";
import { type LookedAt, withOtherRuns } from "./other-run-issues.ts";
import { type ServerFacts, withOpenedTasks } from "./task-set-issues.ts";

/** @param config an object, or YAML or JSON text */
export type LaunchCheck = (config: unknown) => Promise<ConfigCheck>;

export function createLaunchCheck(options: {
  readonly pool: Pool;
  readonly catalogue: () => Promise<CheckCatalogue>;
  readonly tasks: Pick<OpenedTasks, "of">;
  readonly facts: ServerFacts;
  /** Tell whether weights to begin with are whole. */
  readonly places: LookedAt;
}): LaunchCheck {
  const { pool, catalogue, tasks, facts, places } = options;
  return async (config) => {
    const opened = await withOpenedTasks(checkConfig(config, await catalogue()), tasks, facts);
    return withFleetWarning(await withOtherRuns(opened, pool, places), pool);
  };
}
