/** One run from launch to end, and what its events and charts say of it. */
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { RunEvent } from "@rolldeck/contracts/events";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { MetricName } from "@rolldeck/contracts/metrics";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";

export interface MeasuredRun {
  readonly runId: string;
  readonly steps: number;
  readonly warmStartS: number;
  /** Start of the first train step to the end of the last, less the evaluations between them; NaN without train steps. */
  readonly trainS: number;
  /** Points of a chart in the order of steps. */
  values(name: MetricName): Promise<(number | null)[]>;
}

/**
 * @param label begins every line of progress
 * @throws when the run ends other than completed, or not within `limitMs`
 */
export async function measureRun(
  rolldeck: Rolldeck,
  config: RunConfigInput,
  options: { readonly label: string; readonly limitMs: number; readonly progress: (line: string) => void },
): Promise<MeasuredRun> {
  const { runId } = await rolldeck.launchRun(config);
  options.progress(`${options.label}: run ${runId}`);
  const steps = await untilEnded(rolldeck, runId, options);
  const events = await allEvents(rolldeck, runId);
  const trainStart = events.find(({ body }) => body.type === "step-created" && body.purpose === "train")?.at;
  const trainEnd = events.findLast(
    ({ body }) => body.type === "step-status" && body.purpose === "train" && body.to === "done",
  )?.at;
  const warm = events.filter(({ body }) => body.type === "boot-progress" && body.phase === "warm-start");
  const afterWarm = events.find(({ seq }) => seq > (warm.at(-1)?.seq ?? Number.POSITIVE_INFINITY));
  return {
    runId,
    steps,
    warmStartS: secondsBetween(warm[0]?.at, afterWarm?.at),
    trainS: secondsBetween(trainStart, trainEnd) - evaluatingBetween(events, trainStart, trainEnd),
    values: async (name) => {
      const reply = await rolldeck.readMetrics({ runId, names: [name] });
      return reply.series.flatMap(({ points }) => points.map(({ value }) => value));
    },
  };
}

/** @returns the steps it took */
async function untilEnded(
  rolldeck: Rolldeck,
  runId: string,
  { label, limitMs, progress }: { label: string; limitMs: number; progress: (line: string) => void },
): Promise<number> {
  const endsAt = Date.now() + limitMs;
  let lastStep = -1;
  for (;;) {
    const run = await rolldeck.getRun(runId);
    if (run.step !== lastStep)
      progress(`${label}: ${run.status}, step ${run.step}/${run.steps}, success ${run.success ?? "n/a"}`);
    lastStep = run.step;
    if (endedRunStatuses.includes(run.status)) {
      if (run.status !== "completed") throw new Error(`run ${runId} ended ${run.status}: ${run.reason}`);
      return lastStep;
    }
    if (Date.now() > endsAt)
      throw new Error(`run ${runId} did not end within ${limitMs / 60_000} minutes (${run.status}, step ${run.step})`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

const secondsBetween = (from: string | undefined, to: string | undefined): number =>
  from === undefined || to === undefined ? Number.NaN : (Date.parse(to) - Date.parse(from)) / 1000;

async function allEvents(rolldeck: Rolldeck, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for (;;) {
    const page = await rolldeck.readEvents({ runId, after: events.at(-1)?.seq ?? 0, limit: 1000 });
    events.push(...page.events);
    if (page.events.length === 0 || (events.at(-1)?.seq ?? 0) >= page.head) return events;
  }
}

/** Seconds spent in evaluation steps between the first train step's start and the last one's end. */
function evaluatingBetween(events: readonly RunEvent[], from: string | undefined, to: string | undefined): number {
  if (from === undefined || to === undefined) return 0;
  const started = new Map<string, string>();
  let seconds = 0;
  for (const { at, body } of events) {
    if (at < from || at > to) continue;
    if (body.type === "step-created" && body.purpose === "evaluate") started.set(body.stepId, at);
    if (body.type === "step-status" && body.purpose === "evaluate" && body.to === "done") {
      seconds += secondsBetween(started.get(body.stepId) ?? at, at);
    }
  }
  return seconds;
}
