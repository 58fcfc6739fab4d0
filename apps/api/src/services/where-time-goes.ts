/**
 * Splits the time of a step's rollouts into what it was spent on. Pure. Invariant: the parts sum to the time from the moment each
 * rollout could begin until its step was over, or until now; nothing is counted twice and nothing is left out.
 */
import type { Schedule, TimePart, UseLane } from "@rolldeck/contracts/api/schedule";
import { stages } from "@rolldeck/contracts/lifecycle";

export interface TimeInput {
  readonly schedule: Pick<Schedule, "toMs" | "gatheredMs" | "rollouts" | "spans">;
  /** Mean counts of the whole run in equal slices of the shown span; `sandbox` those of all runs. */
  readonly lanes: Readonly<Record<Exclude<UseLane, "model">, readonly number[]>>;
  readonly sliceMs: number;
  /** What each lane may hold; null: no limit. */
  readonly sizes: Readonly<Record<Exclude<UseLane, "model">, number | null>>;
  /** The policy holds a run slot from init to the reward. */
  readonly holdsRunSlot: boolean;
  /** Of calls that are over, in attempts that count. */
  readonly modelMs: number;
  readonly toolMs: number;
}

/** In use as far as it can be: between two rollouts a slot is free for a moment. */
const fullFrom = 0.9;

export function whereTimeGoes(input: TimeInput): Record<TimePart, number> {
  const time: Record<TimePart, number> = {
    ...{ initSlot: 0, sandbox: 0, runSlot: 0, gradeSlot: 0, admission: 0, setUp: 0, model: 0, tools: 0 },
    ...{ loop: 0, grading: 0, lost: 0, siblings: 0, trainer: 0 },
  };
  const { spans, rollouts } = input.schedule;
  let runMs = 0;
  for (const [at, rollout] of spans.rollout.entries()) {
    const ended = spans.endedMs[at] ?? input.schedule.toMs;
    const ready = spans.readyMs[at] ?? ended;
    const started = Math.max(ready, spans.startedMs[at] ?? ended);
    const stage = spans.stage[at] ?? 0;
    addWait(time, input, stage, ready, started);
    const worked = Math.max(0, ended - started);
    if (spans.attempt[at] !== rollouts.attempt[rollout]) time.lost += worked;
    else if (stage === 0) time.setUp += worked;
    else if (stage === 1) runMs += worked;
    else time.grading += worked;
  }
  // Calls may overlap, and clocks of workers and database differ: they never take more than the stage did.
  time.model = Math.min(input.modelMs, runMs);
  time.tools = Math.min(input.toolMs, runMs - time.model);
  time.loop = runMs - time.model - time.tools;
  addAfter(time, input.schedule);
  return time;
}

/** Slice by slice, by what was used up in it. */
function addWait(time: Record<TimePart, number>, input: TimeInput, stage: number, from: number, to: number): void {
  const last = Math.max(0, input.lanes.run.length - 1);
  for (let at = from; at < to; ) {
    const slice = Math.min(last, Math.max(0, Math.floor(at / input.sliceMs)));
    const end = slice === last ? to : Math.min(to, Math.max((slice + 1) * input.sliceMs, at + 1e-3));
    time[causeOf(input, stage, slice)] += end - at;
    at = end;
  }
}

function causeOf(input: TimeInput, stage: number, slice: number): TimePart {
  const { lanes, sizes, holdsRunSlot } = input;
  const isFull = (lane: keyof typeof lanes, count = lanes[lane][slice] ?? 0) => {
    const size = sizes[lane];
    return size !== null && count >= size * fullFrom;
  };
  if (stage === stages.indexOf("run")) return isFull("run") ? "runSlot" : "admission";
  const started = (lanes.init[slice] ?? 0) + (lanes.run[slice] ?? 0) + (lanes.evaluate[slice] ?? 0);
  if (stage === stages.indexOf("init")) {
    if (isFull("init")) return "initSlot";
    if (holdsRunSlot && isFull("run", started)) return "runSlot";
  } else if (isFull("evaluate")) return "gradeSlot";
  return isFull("sandbox") ? "sandbox" : "admission";
}

/** From each settled rollout's end until the step's. */
function addAfter(time: Record<TimePart, number>, { rollouts, gatheredMs, toMs }: TimeInput["schedule"]): void {
  for (const settled of rollouts.settledMs) {
    if (settled === null) continue;
    const gathered = Math.min(toMs, Math.max(settled, gatheredMs ?? toMs));
    time.siblings += Math.max(0, gathered - settled);
    time.trainer += Math.max(0, toMs - gathered);
  }
}
