/** Where each rollout's lane lies, and which stretch of time is shown. Pure; times are milliseconds from the schedule's start. */
import type { Schedule } from "@rolldeck/contracts/api/schedule";

export interface View {
  readonly fromMs: number;
  readonly toMs: number;
}

export const laneHeights = { comfortable: 14, compact: 8, fine: 4 } as const;
/** Between the lanes of two groups. */
const groupGap = 6;

export interface GanttLayout {
  /** Places in `schedule.rollouts`, from top to bottom. */
  readonly order: readonly number[];
  /** Top of each lane by its place in `order`. */
  readonly tops: Float64Array;
  readonly laneHeight: number;
  readonly height: number;
  /** Spans of each rollout: places in `schedule.spans`, by the rollout's place. */
  readonly spansOf: readonly (readonly number[])[];
}

export function layOut(schedule: Pick<Schedule, "rollouts" | "spans">): GanttLayout {
  const { rollouts, spans } = schedule;
  const count = rollouts.rolloutId.length;
  const laneHeight = count <= 64 ? laneHeights.comfortable : count <= 512 ? laneHeights.compact : laneHeights.fine;
  const order = Array.from({ length: count }, (_, at) => at);
  order.sort(
    (a, b) =>
      (rollouts.group[a] ?? 0) - (rollouts.group[b] ?? 0) || (rollouts.sample[a] ?? 0) - (rollouts.sample[b] ?? 0),
  );
  const tops = new Float64Array(count);
  let top = 0;
  for (const [at, rollout] of order.entries()) {
    const before = at === 0 ? undefined : order[at - 1];
    if (before !== undefined && rollouts.group[before] !== rollouts.group[rollout]) top += groupGap;
    tops[at] = top;
    top += laneHeight;
  }
  const spansOf: number[][] = Array.from({ length: count }, () => []);
  for (const [at, rollout] of spans.rollout.entries()) spansOf[rollout]?.push(at);
  return { order, tops, laneHeight, height: top, spansOf };
}

/** The lane at this height: its place in `order`; null between two groups or outside. */
export function laneAt({ tops, laneHeight }: GanttLayout, y: number): number | null {
  const at = lastNotAfter(tops, y);
  return at >= 0 && y < (tops[at] ?? 0) + laneHeight ? at : null;
}

/** Lanes that a window of this height shows: from the first to before the second. */
export function lanesIn({ tops, laneHeight }: GanttLayout, top: number, height: number): readonly [number, number] {
  const first = Math.max(0, lastNotAfter(tops, top - laneHeight));
  return [first, lastNotAfter(tops, top + height) + 1];
}

function lastNotAfter(tops: Float64Array, y: number): number {
  let [low, high] = [0, tops.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle] ?? 0) <= y) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Closer than this nothing can be told apart any more. */
const leastMs = 20;

/** Zoomed about a moment that keeps its place; never beyond the whole. @param factor below 1 = closer */
export function zoom(view: View, whole: View, aboutMs: number, factor: number): View {
  const most = whole.toMs - whole.fromMs;
  const width = Math.min(most, Math.max(Math.min(leastMs, most), (view.toMs - view.fromMs) * factor));
  const share = (aboutMs - view.fromMs) / Math.max(1e-9, view.toMs - view.fromMs);
  return within({ fromMs: aboutMs - share * width, toMs: aboutMs + (1 - share) * width }, whole);
}

export const pan = (view: View, whole: View, byMs: number): View =>
  within({ fromMs: view.fromMs + byMs, toMs: view.toMs + byMs }, whole);

/** As wide as it is, moved into the whole. */
export function within(view: View, whole: View): View {
  const width = Math.min(whole.toMs - whole.fromMs, view.toMs - view.fromMs);
  const fromMs = Math.min(Math.max(view.fromMs, whole.fromMs), whole.toMs - width);
  return { fromMs, toMs: fromMs + width };
}

/** Round moments for the axis, some `count` of them. */
export function timeTicks({ fromMs, toMs }: View, count: number): number[] {
  const raw = (toMs - fromMs) / Math.max(1, count);
  const steps = [
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4],
    ...[6e4, 1.2e5, 3e5, 6e5, 9e5, 1.8e6, 3.6e6, 7.2e6, 1.44e7, 2.88e7, 4.32e7, 8.64e7],
  ];
  const step = steps.find((each) => each >= raw) ?? 8.64e7 * Math.ceil(raw / 8.64e7);
  const ticks: number[] = [];
  for (let tick = Math.ceil(fromMs / step) * step; tick <= toMs; tick += step) ticks.push(tick);
  return ticks;
}
