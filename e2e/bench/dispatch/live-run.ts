/** A workload played by the live engine: one run on the real worker, queue and database, measured from its recorded stages. */

import { stages } from "@rolldeck/contracts/lifecycle";
import { RunConfig, type RunConfigInput } from "@rolldeck/contracts/run-config";
import type { Pool } from "@rolldeck/db/connect";
import { createRun } from "@rolldeck/db/runs/create-run";
import type { Workload } from "@rolldeck/dispatch/testing/paper-workload";
import { z } from "zod";
import { untilCompleted } from "../agent/bench-scene.ts";

const Span = z.object({
  step: z.int(),
  instanceIndex: z.int(),
  sample: z.int(),
  attempt: z.int(),
  stage: z.enum(stages),
  readyAt: z.number(),
  startedAt: z.number(),
  endedAt: z.number(),
});
/** Times are milliseconds of the database's clock. */
export type LiveSpan = z.infer<typeof Span>;

/** The same for the live engine and for the simulator, down to the seed that orders the instances. */
export function runConfigOf(
  workload: Workload,
  of: {
    readonly task: string;
    readonly dispatcher: string;
    readonly steps: number;
    readonly change?: Partial<RunConfigInput>;
  },
): RunConfigInput {
  const { bounds, stageTimeoutMs, groups, groupSize } = workload;
  return {
    kind: "train",
    name: `${of.task} ${of.dispatcher}`,
    model: { name: "quickstart" },
    taskSets: [{ name: of.task }],
    agent: { maxTurns: 1000, maxContextTokens: 65_536, describeTools: false, sampling: { maxTokensPerTurn: 64 } },
    evaluation: { samples: 0 },
    seed: 1,
    ...of.change,
    dispatcher: { ...of.change?.dispatcher, name: of.dispatcher, bounds, stageTimeoutMs },
    algorithm: { groupsPerStep: groups, groupSize, ...of.change?.algorithm },
    budget: { steps: of.steps },
  };
}

/** Launches the run and waits for its end. @returns its stages, every rollout's each once */
export async function playLive(pool: Pool, config: RunConfigInput, limitMs: number): Promise<LiveSpan[]> {
  const { runId } = await createRun(pool, { config: RunConfig.parse(config) });
  await untilCompleted({ pool }, runId, limitMs);
  const { rows } = await pool.query(
    `select s.step, g.instance_index as "instanceIndex", r.sample, p.attempt, p.stage, extract(epoch from p.ready_at)::float8 * 1000 as "readyAt",
       extract(epoch from p.started_at)::float8 * 1000 as "startedAt", extract(epoch from p.ended_at)::float8 * 1000 as "endedAt"
     from stage_spans p join rollouts r on r.id = p.rollout_id join steps s on s.id = r.step_id
       join groups g on g.id = r.group_id
     where p.run_id = $1 order by p.ready_at`,
    [runId],
  );
  return z.array(Span).parse(rows);
}

/** From the step's first waiting rollout to its last reward, milliseconds. */
export function makespanMs(spans: readonly LiveSpan[], step: number): number {
  const own = spans.filter((span) => span.step === step);
  return Math.max(...own.map(({ endedAt }) => endedAt)) - Math.min(...own.map(({ readyAt }) => readyAt));
}

/** Mean share of the run slots in use from the step's first to its last start of a run stage, percent. */
export function slotBusyPct(spans: readonly LiveSpan[], step: number, slots: number): number {
  const own = spans.filter((span) => span.step === step && span.stage === "run");
  const from = Math.min(...own.map(({ startedAt }) => startedAt));
  const to = Math.max(...own.map(({ startedAt }) => startedAt));
  const used = own.reduce((sum, { startedAt, endedAt }) => sum + Math.max(0, Math.min(endedAt, to) - startedAt), 0);
  return (100 * used) / ((to - from) * slots);
}
