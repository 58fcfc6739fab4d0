/** Runs: reads pass through; launch and actions write a row first and only then tell the queue. */
import type { RunActions } from "@rolldeck/contracts/api/runs";
import { ConflictError, InputError, NotFoundError } from "@rolldeck/contracts/errors";
import { endedRunStatuses, type RunStatus, reopenEdges } from "@rolldeck/contracts/lifecycle";
import { reopenEvaluation } from "@rolldeck/db/hot/reopen-evaluation";
import { compareRuns } from "@rolldeck/db/reads/compare-runs";
import { listRuns } from "@rolldeck/db/reads/list-runs";
import { readDurations } from "@rolldeck/db/reads/read-durations";
import { readEvaluations } from "@rolldeck/db/reads/read-evaluation";
import { readEvents } from "@rolldeck/db/reads/read-events";
import { readMatrix } from "@rolldeck/db/reads/read-matrix";
import { readMetrics } from "@rolldeck/db/reads/read-metrics";
import { readRun } from "@rolldeck/db/reads/read-run";
import { readRunStatus } from "@rolldeck/db/reads/read-run-status";
import { readTimeline } from "@rolldeck/db/reads/read-timeline";
import { createRun } from "@rolldeck/db/runs/create-run";
import { setDraining } from "@rolldeck/db/runs/drain-run";
import { moveRun } from "@rolldeck/db/runs/move-run";
import type { Pool } from "pg";
import type { RunServices } from "../services.ts";
import { evaluationReport } from "./evaluation-report.ts";
import type { LaunchCheck } from "./launch-check.ts";
import { type OverlapSources, withOverlapWarning } from "./overlap-warning.ts";
import { stepBatch } from "./step-batch.ts";

export interface RunServiceOptions {
  readonly pool: Pool;
  /** Tells the run's planner. Never fails: the row is written, and the sweep finds a run nobody was told of. */
  readonly wake: (runId: string) => Promise<void>;
  readonly check: LaunchCheck;
  /** What a policy gains that samples during updates. */
  readonly overlap: Omit<OverlapSources, "pool">;
  /** Resolves when the run has an event after `after`, or the time is over. */
  readonly waitForEvents: (runId: string, after: number, waitMs: number) => Promise<void>;
}

export function createRunServices(options: RunServiceOptions): RunServices {
  const { pool, wake, check: checked, waitForEvents } = options;
  return {
    list: (input) => listRuns(pool, input),
    get: ({ runId }) => readRun(pool, runId),
    // A launch asks nobody again, so only a check is worth the simulation.
    check: async ({ config }) => withOverlapWarning(await checked(config), { ...options.overlap, pool }),
    async launch({ config }) {
      const check = await checked(config);
      if (!check.config)
        throw new InputError(check.issues.map(({ path, message, fix }) => ({ path, message, fix: fix ?? undefined })));
      const { runId } = await createRun(pool, { config: check.config });
      await wake(runId);
      return { runId };
    },
    async act({ runId, action, reason }, by) {
      const status = await act(pool, { runId, action, reason: reason ?? plainReasons[action], by });
      await wake(runId);
      return { runId, status };
    },
    async events({ runId, after, limit, waitMs }) {
      const page = await readEvents(pool, runId, after, limit);
      if (!page) throw new NotFoundError("run", runId);
      // Past the end there is nothing to wait for: such an event may never come.
      if (page.events.length > 0 || waitMs === 0 || after > page.head) return page;
      await waitForEvents(runId, after, waitMs);
      return (await readEvents(pool, runId, after, limit)) ?? page;
    },
    metrics: (input) => readMetrics(pool, input),
    matrix: (input) => readMatrix(pool, input),
    timeline: (input) => readTimeline(pool, input),
    durations: (input) => readDurations(pool, input),
    compare: (input) => compareRuns(pool, input),
    batch: (input) => stepBatch(pool, input),
    async evaluation({ runId, baseline }) {
      const own = await readEvaluations(pool, runId, maxEvaluations);
      const other = baseline ?? own.config.evaluation.baseline;
      return evaluationReport(own, other === null ? null : await readEvaluations(pool, other, 1));
    },
  };
}

/** Evaluations in one answer. */
const maxEvaluations = 200;

type RunAction = (typeof RunActions)[number];

/** What the page shows where nobody gave a reason. A run that goes on needs none. */
const plainReasons: Record<RunAction, string | null> = {
  pause: "paused by hand",
  drain: null,
  resume: null,
  stop: "stopped by hand",
};

/** Where an action leads from each status; null: it is there already. A status that is missing refuses. */
const destinations: Record<RunAction, Partial<Record<RunStatus, RunStatus | null>>> = {
  pause: { preparing: "pausing", running: "pausing", pausing: null, paused: null },
  // Where nothing is begun any more there is nothing to drain.
  drain: { preparing: null, running: null, pausing: null, paused: null },
  resume: { pausing: "running", paused: "queued", queued: null, preparing: null, running: null },
  stop: {
    queued: "stopped",
    preparing: "stopping",
    running: "stopping",
    pausing: "stopping",
    paused: "stopping",
    stopping: null,
    stopped: null,
  },
};
/** The planner may move a run between our read and our write; each time its new status is judged afresh. */
const maxRaces = 5;

interface AskedOfRun {
  readonly runId: string;
  readonly action: RunAction;
  readonly reason: string | null;
  readonly by: string;
}

/** @throws NotFoundError, ConflictError when the run's status does not allow it */
async function act(pool: Pool, asked: AskedOfRun): Promise<RunStatus> {
  const { runId, action, reason, by } = asked;
  for (let race = 0; ; race++) {
    const status = await readRunStatus(pool, runId);
    if (status === null) throw new NotFoundError("run", runId);
    const to = destinations[action][status];
    // What goes on drains no more; a run that only drained needs nothing else.
    if (to !== undefined && (action === "drain" || action === "resume"))
      await setDraining(pool, runId, { draining: action === "drain", by, reason });
    if (to === null) return status;
    if (action === "resume" && Object.hasOwn(reopenEdges.run, status)) {
      await reopenEvaluation(pool, runId, reason ?? "taken up again for what it did not score");
      return "queued";
    }
    if (to === undefined) throw new ConflictError(refusal(action, status));
    try {
      return await moveRun(pool, runId, to, reason);
    } catch (error) {
      if (!(error instanceof ConflictError) || race >= maxRaces) throw error;
    }
  }
}

const refusal = (action: RunAction, status: RunStatus): string =>
  endedRunStatuses.includes(status)
    ? `The run is ${status}: it can't ${action} any more.`
    : `A run that is ${status} can't ${action}${status === "queued" ? " yet: stop it, or wait until it prepares" : ""}.`;
