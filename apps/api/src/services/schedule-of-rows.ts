/** Rows of a step's schedule as the contract's columns. Pure. */
import type { Schedule, UseLane } from "@rolldeck/contracts/api/schedule";
import { type Stage, stages } from "@rolldeck/contracts/lifecycle";
import type { ScheduleRows, ShownStep } from "@rolldeck/db/reads/read-schedule";
import { type TimeInput, whereTimeGoes } from "./where-time-goes.ts";

type Lane = Schedule["use"]["lanes"][number];
type Head = Pick<Schedule, "runId" | "purpose">;

/** All but what was predicted. */
export function scheduleOfRows(
  head: Head,
  asked: number | undefined,
  rows: ScheduleRows,
  slices: number,
): Omit<Schedule, "prediction"> {
  const { shown } = rows;
  if (shown === null) return { ...head, step: asked ?? null, steps: [...rows.steps], ...nothing };
  const msOf = (s: number) => Math.round((s - shown.fromS) * 1e6) / 1e3;
  const maybe = (s: number | null) => (s === null ? null : msOf(s));
  const toMs = msOf(shown.toS);
  const { groups, rollouts, place } = rolloutColumns(shown, maybe);
  const spans = spanColumns(shown, place, msOf, maybe);
  const sliceMs = toMs / slices;
  const lanes = lanesOf(rows, shown, slices);
  const gatheredMs = maybe(shown.gatheredS);
  return {
    ...head,
    step: shown.step,
    state: shown.state,
    steps: [...rows.steps],
    fromAt: new Date(shown.fromS * 1000).toISOString(),
    toMs,
    over: shown.endedS !== null,
    gatheredMs,
    updateStartedMs: maybe(shown.updateStartedS),
    groups,
    rollouts,
    spans,
    use: { sliceMs, lanes },
    time: whereTimeGoes({
      schedule: { toMs, gatheredMs, rollouts, spans },
      ...limitsOf(lanes),
      sliceMs,
      holdsRunSlot: rows.config.dispatcher.name === "bounded",
      modelMs: shown.modelMs,
      toolMs: shown.toolMs,
    }),
  };
}

const nothing = {
  ...{ state: null, fromAt: null, toMs: 0, over: false, gatheredMs: null, updateStartedMs: null, groups: [] },
  rollouts: { rolloutId: [], group: [], sample: [], attempt: [], state: [], ending: [], settledMs: [] },
  spans: { rollout: [], attempt: [], stage: [], readyMs: [], startedMs: [], endedMs: [] },
  use: { sliceMs: 0, lanes: [] },
  time: {
    ...{ initSlot: 0, sandbox: 0, runSlot: 0, gradeSlot: 0, admission: 0, setUp: 0, model: 0, tools: 0, loop: 0 },
    ...{ grading: 0, lost: 0, siblings: 0, trainer: 0 },
  },
} satisfies Partial<Schedule>;

function rolloutColumns({ rollouts: rows }: ShownStep, maybe: (s: number | null) => number | null) {
  const place = new Map<string, number>();
  const groupPlace = new Map<string, number>();
  const groups: Schedule["groups"] = [];
  for (const [at, { rolloutId, groupId, taskSet, instanceId }] of rows.entries()) {
    place.set(rolloutId, at);
    if (groupPlace.has(groupId)) continue;
    groupPlace.set(groupId, groups.length);
    groups.push({ groupId, taskSet, instanceId });
  }
  const rollouts: Schedule["rollouts"] = {
    rolloutId: rows.map(({ rolloutId }) => rolloutId),
    group: rows.map(({ groupId }) => groupPlace.get(groupId) ?? 0),
    sample: rows.map(({ sample }) => sample),
    attempt: rows.map(({ attempt }) => attempt),
    state: rows.map(({ state }) => state),
    ending: rows.map(({ ending }) => ending),
    settledMs: rows.map(({ settledS }) => maybe(settledS)),
  };
  return { groups, rollouts, place };
}

function spanColumns(
  { spans }: ShownStep,
  place: ReadonlyMap<string, number>,
  msOf: (s: number) => number,
  maybe: (s: number | null) => number | null,
): Schedule["spans"] {
  const stagePlace = new Map<Stage, number>(stages.map((stage, at) => [stage, at]));
  return {
    rollout: spans.map(({ rolloutId }) => place.get(rolloutId) ?? 0),
    attempt: spans.map(({ attempt }) => attempt),
    stage: spans.map(({ stage }) => stagePlace.get(stage) ?? 0),
    readyMs: spans.map(({ readyS }) => msOf(readyS)),
    startedMs: spans.map(({ startedS }) => maybe(startedS)),
    endedMs: spans.map(({ endedS }) => maybe(endedS)),
  };
}

/** Lanes of what the run uses; a run without sandboxes or model calls has none for them. */
function lanesOf({ config, pools }: ScheduleRows, { use }: ShownStep, slices: number): Lane[] {
  const none = Array.from({ length: slices }, () => 0);
  const { bounds } = config.dispatcher;
  const slots = { init: pools.initSlot, run: pools.runSlot, evaluate: pools.gradeSlot };
  const names = { init: "init slots", run: "run slots", evaluate: "grading slots" };
  const lanes = stages.map((lane): Lane => {
    const pool = slots[lane] ?? Number.POSITIVE_INFINITY;
    const bound = pool < bounds[lane] ? `the pool of ${names[lane]}` : `bounds.${lane}`;
    return { lane, mean: [...(use.get(lane) ?? none)], allRuns: null, size: Math.min(pool, bounds[lane]), bound };
  });
  const sandboxes = use.get("sandbox");
  if (sandboxes)
    lanes.push({
      lane: "sandbox",
      mean: [...sandboxes],
      allRuns: [...(use.get("sandbox/all") ?? sandboxes)],
      size: pools.sandbox ?? null,
      bound: "the pool of sandboxes",
    });
  const model = use.get("model");
  if (model) lanes.push({ lane: "model", mean: [...model], allRuns: null, size: null, bound: null });
  return lanes;
}

function limitsOf(lanes: readonly Lane[]): Pick<TimeInput, "lanes" | "sizes"> {
  const find = (lane: UseLane) => lanes.find((each) => each.lane === lane);
  const mean = (lane: UseLane) => find(lane)?.allRuns ?? find(lane)?.mean ?? [];
  const size = (lane: UseLane) => find(lane)?.size ?? null;
  return {
    lanes: { init: mean("init"), run: mean("run"), evaluate: mean("evaluate"), sandbox: mean("sandbox") },
    sizes: { init: size("init"), run: size("run"), evaluate: size("evaluate"), sandbox: size("sandbox") },
  };
}
