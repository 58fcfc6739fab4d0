/** Every REST route, in the order of the document. */
import { artifactRoutes } from "./artifact-routes.ts";
import { batchRoutes } from "./batch-routes.ts";
import { checkpointRoutes } from "./checkpoint-routes.ts";
import { comparisonRoutes } from "./comparison-routes.ts";
import { dispatchRoutes } from "./dispatch-routes.ts";
import { fleetRoutes } from "./fleet-routes.ts";
import { drivenRoutes, rolloutRoutes } from "./rollout-routes.ts";
import type { Route } from "./route.ts";
import { runRoutes } from "./run-routes.ts";
import { sandboxRoutes } from "./sandbox-routes.ts";
import { scheduleRoutes } from "./schedule-routes.ts";
import { servingRoutes } from "./serving-routes.ts";
import { systemRoutes } from "./system-routes.ts";

export const routes: readonly Route[] = [
  ...runRoutes,
  ...comparisonRoutes,
  ...batchRoutes,
  ...checkpointRoutes,
  ...servingRoutes,
  ...dispatchRoutes,
  ...rolloutRoutes,
  ...artifactRoutes,
  ...sandboxRoutes,
  ...scheduleRoutes,
  ...drivenRoutes,
  ...fleetRoutes,
  ...systemRoutes,
];
