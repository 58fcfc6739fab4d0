/** What the engine of a run bears now, and the run's limit with its reason, as the planner sees both. Pure. */
import { findBackend } from "@rolldeck/backends/registry";
import type { EngineNow } from "@rolldeck/contracts/api/schedule";
import type { RunSnapshot } from "@rolldeck/contracts/plan";
import { freshMs } from "@rolldeck/dispatch/adaptive";

export function engineNow({ config, now, engine = null, runLimit = null }: RunSnapshot): EngineNow {
  const { adaptive, bounds } = config.dispatcher;
  const limited = adaptive && runLimit !== null ? runLimit : null;
  return {
    tells: findBackend(config.backend.name)?.load ?? false,
    load: engine === null ? null : { ...loadOf(engine), fresh: now - engine.at <= freshMs },
    adaptive,
    limit: Math.min(limited?.limit ?? bounds.run, bounds.run),
    bound: bounds.run,
    limitSince: limited === null ? null : new Date(limited.since).toISOString(),
    limitReason: limited?.reason ?? null,
  };
}

const loadOf = ({ at, running, waiting, cacheUse }: NonNullable<RunSnapshot["engine"]>) => ({
  readAt: new Date(at).toISOString(),
  running,
  waiting,
  cacheUse,
});
