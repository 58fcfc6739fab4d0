/** A lane in words: whose it is and, at a moment, what it does. Pure. */
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { endingRule } from "@rolldeck/contracts/endings";
import { stages } from "@rolldeck/contracts/lifecycle";
import { formatDuration } from "../../format/times.ts";
import type { GanttLayout } from "./gantt-layout.ts";

const doing = { init: "is set up", run: "runs", evaluate: "is graded" } as const;

export function laneText(
  schedule: Pick<Schedule, "rollouts" | "spans" | "groups" | "toMs">,
  layout: Pick<GanttLayout, "spansOf">,
  rollout: number,
  atMs: number | null,
): string {
  const { rollouts, groups } = schedule;
  const name = `${groups[rollouts.group[rollout] ?? 0]?.instanceId ?? ""} sample ${(rollouts.sample[rollout] ?? 0) + 1}`;
  const ending = rollouts.ending[rollout] ?? null;
  const end = ending === null ? `${rollouts.state[rollout]}` : endingRule(ending).label;
  if (atMs === null) return `${name}: ${end}`;
  const span = (layout.spansOf[rollout] ?? []).find((at) => covers(schedule, at, atMs));
  if (span === undefined) return `${name}: ${atMs < firstMs(schedule, layout, rollout) ? "not there yet" : end}`;
  const { spans, toMs } = schedule;
  const stage = stages[spans.stage[span] ?? 0] ?? "run";
  const attempt = spans.attempt[span] ?? 1;
  const tried =
    (rollouts.attempt[rollout] ?? 1) > 1
      ? `, attempt ${attempt}${attempt === rollouts.attempt[rollout] ? "" : " (lost)"}`
      : "";
  const [ready, started] = [spans.readyMs[span] ?? 0, spans.startedMs[span] ?? null];
  const ended = spans.endedMs[span] ?? toMs;
  if (started === null || atMs < started)
    return `${name}: waits for ${stage} for ${formatDuration((started ?? ended) - ready)}${tried}`;
  return `${name}: ${doing[stage]} for ${formatDuration(ended - started)}${tried}`;
}

const covers = ({ spans, toMs }: Pick<Schedule, "spans" | "toMs">, at: number, ms: number): boolean =>
  ms >= (spans.readyMs[at] ?? 0) && ms < (spans.endedMs[at] ?? toMs);

const firstMs = (
  { spans }: Pick<Schedule, "spans">,
  { spansOf }: Pick<GanttLayout, "spansOf">,
  rollout: number,
): number =>
  (spansOf[rollout] ?? []).reduce((least, at) => Math.min(least, spans.readyMs[at] ?? 0), Number.POSITIVE_INFINITY);
