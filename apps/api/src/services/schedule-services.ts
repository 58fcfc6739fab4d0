/** Schedules of runs and the pools that they share. */
import { NotFoundError } from "@rolldeck/contracts/errors";
import { readDiscards } from "@rolldeck/db/reads/read-discards";
import { readPart } from "@rolldeck/db/reads/read-part";
import { readPools } from "@rolldeck/db/reads/read-pools";
import { readPrediction } from "@rolldeck/db/reads/read-prediction";
import { readSchedule, useSlices } from "@rolldeck/db/reads/read-schedule";
import { readSnapshot, type TaskFacts } from "@rolldeck/db/reconcile/read-snapshot";
import type { Pool } from "pg";
import type { ScheduleServices } from "../services.ts";
import { predictionReport } from "./prediction-report.ts";
import { scheduleOfRows } from "./schedule-of-rows.ts";
import { waitingNow } from "./waiting-now.ts";

export function createScheduleServices(options: {
  readonly pool: Pool;
  readonly needsSandbox: (task: string) => boolean;
  readonly taskFacts: TaskFacts;
}): ScheduleServices {
  const { pool, needsSandbox, taskFacts } = options;
  return {
    async ofStep(input) {
      const { runId, purpose } = input;
      const [rows, predicted] = await Promise.all([readSchedule(pool, input), readPrediction(pool, runId, purpose)]);
      const schedule = scheduleOfRows({ runId, purpose }, input.step, rows, useSlices);
      return { ...schedule, prediction: predicted && predictionReport(predicted, rows, schedule.spans) };
    },
    async waiting({ runId }) {
      const read = await readSnapshot(pool, runId, taskFacts);
      if (read === null) throw new NotFoundError("run", runId);
      const { pools } = await readPools(pool, needsSandbox);
      return waitingNow(read.snapshot, read.grants, pools);
    },
    discards: ({ runId }) => readDiscards(pool, runId),
    part: ({ part, id }) => readPart(pool, part, id),
    pools: () => readPools(pool, needsSandbox),
  };
}
