/**
 * The quickstart run on the whole stack, one run a seed. Success before and after is measured by the run's evaluation steps on
 * held-out episodes (never trained on), outside `trainS`.
 */
import path from "node:path";
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import type { RunEvent } from "@rolldeck/contracts/events";
import { endedRunStatuses } from "@rolldeck/contracts/lifecycle";
import type { MetricName } from "@rolldeck/contracts/metrics";
import { presets } from "@rolldeck/contracts/presets";
import { type StartedStack, startStack } from "../stack/started-stack.ts";

interface SeedResult {
  readonly seed: number;
  readonly firstSuccess: number | null;
  readonly lastSuccess: number | null;
  readonly steps: number;
  readonly warmStartS: number;
  /** Start of the first train step to the end of the last, less the evaluations between them. */
  readonly trainS: number;
  readonly tokensPerS: number;
  readonly logprobGapMax: number | null;
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

async function lastValues(
  rolldeck: Rolldeck,
  runId: string,
  names: MetricName[],
): Promise<Map<string, (number | null)[]>> {
  const reply = await rolldeck.readMetrics({ runId, names });
  return new Map(reply.series.map((series) => [series.name, series.points.map((point) => point.value)]));
}

async function measure(stack: StartedStack, seed: number, progress: (line: string) => void): Promise<SeedResult> {
  const { rolldeck } = stack;
  const { runId } = await rolldeck.launchRun({ ...presets.quickstart.config, seed, name: `quickstart ${seed}` });
  progress(`seed ${seed}: run ${runId}`);
  const endsAt = Date.now() + 20 * 60_000;
  let lastStep = -1;
  for (;;) {
    const run = await rolldeck.getRun(runId);
    if (run.step !== lastStep)
      progress(`seed ${seed}: ${run.status}, step ${run.step}/${run.steps}, success ${run.success ?? "n/a"}`);
    lastStep = run.step;
    if (endedRunStatuses.includes(run.status)) {
      if (run.status !== "completed") throw new Error(`run ${runId} ended ${run.status}: ${run.reason}`);
      break;
    }
    if (Date.now() > endsAt)
      throw new Error(`run ${runId} did not end within 20 minutes (${run.status}, step ${run.step})`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  const events = await allEvents(rolldeck, runId);
  const trainStart = events.find(({ body }) => body.type === "step-created" && body.purpose === "train")?.at;
  const trainEnd = events.findLast(
    ({ body }) => body.type === "step-status" && body.purpose === "train" && body.to === "done",
  )?.at;
  const warm = events.filter(({ body }) => body.type === "boot-progress" && body.phase === "warm-start");
  const afterWarm = events.find(({ seq }) => seq > (warm.at(-1)?.seq ?? Number.POSITIVE_INFINITY));
  const values = await lastValues(rolldeck, runId, [
    "evaluate/success",
    "policy/logprob-gap",
    "throughput/tokens-per-second",
  ]);
  const success = values.get("evaluate/success") ?? [];
  const gaps = (values.get("policy/logprob-gap") ?? []).filter((gap) => gap !== null);
  const speeds = (values.get("throughput/tokens-per-second") ?? []).filter((speed) => speed !== null);
  const result: SeedResult = {
    seed,
    firstSuccess: success[0] ?? null,
    lastSuccess: success.at(-1) ?? null,
    steps: lastStep,
    warmStartS: secondsBetween(warm[0]?.at, afterWarm?.at),
    trainS: secondsBetween(trainStart, trainEnd) - evaluatingBetween(events, trainStart, trainEnd),
    tokensPerS: speeds.reduce((sum, speed) => sum + speed, 0) / Math.max(1, speeds.length),
    logprobGapMax: gaps.length === 0 ? null : Math.max(...gaps),
  };
  progress(JSON.stringify(result));
  return result;
}

export async function run(args: string[], progress: (line: string) => void): Promise<object> {
  const flag = args.find((arg) => arg.startsWith("--seeds="))?.slice("--seeds=".length) ?? "1,2,3";
  const stack = await startStack({
    root: path.resolve(import.meta.dirname, "../.."),
    args: ["--no-demo", "--only", "api,worker,gpu-worker"],
    onLine: progress,
  });
  try {
    const runs: SeedResult[] = [];
    for (const seed of flag.split(",").map(Number)) runs.push(await measure(stack, seed, progress));
    return { runs };
  } finally {
    await stack.stop();
  }
}
