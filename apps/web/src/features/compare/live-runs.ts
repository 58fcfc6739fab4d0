import type { RunSummary } from "@rolldeck/contracts/api/runs";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";

/** Between two looks at runs that go on. */
const livePauseMs = 5_000;

export const anyLive = (runs: readonly Pick<RunSummary, "status">[] | undefined): boolean =>
  runs?.some(({ status }) => !endedRunStatuses.includes(status)) ?? false;

/** For a query's `refetchInterval`: runs that are over are not asked for again. */
export const livePause = (runs: readonly Pick<RunSummary, "status">[] | undefined): number | false =>
  anyLive(runs) ? livePauseMs : false;
