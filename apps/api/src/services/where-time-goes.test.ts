import type { Schedule } from "@rolldeck/contracts/api/schedule";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type TimeInput, whereTimeGoes } from "./where-time-goes.ts";

interface SpanOf {
  readonly rollout: number;
  readonly stage: number;
  readonly readyMs: number;
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  readonly attempt?: number;
}
const columns = (spans: readonly SpanOf[]): Schedule["spans"] => ({
  rollout: spans.map((span) => span.rollout),
  attempt: spans.map((span) => span.attempt ?? 1),
  stage: spans.map((span) => span.stage),
  readyMs: spans.map((span) => span.readyMs),
  startedMs: spans.map((span) => span.startedMs),
  endedMs: spans.map((span) => span.endedMs),
});
const rolloutsOf = (settledMs: readonly (number | null)[], attempt = 1): Schedule["rollouts"] => ({
  rolloutId: settledMs.map((_, at) => `rollout${at}`),
  group: settledMs.map(() => 0),
  sample: settledMs.map((_, at) => at),
  attempt: settledMs.map(() => attempt),
  state: settledMs.map((at) => (at === null ? "active" : "settled")),
  ending: settledMs.map(() => null),
  settledMs: [...settledMs],
});
const lane = (count: number) => Array.from({ length: 10 }, () => count);

function input(
  over: Partial<TimeInput> & { spans: readonly SpanOf[]; settledMs: readonly (number | null)[] },
): TimeInput {
  const { spans, settledMs, ...rest } = over;
  return {
    schedule: { toMs: 1000, gatheredMs: 800, rollouts: rolloutsOf(settledMs), spans: columns(spans) },
    lanes: { init: lane(0), run: lane(0), evaluate: lane(0), sandbox: lane(0) },
    sizes: { init: 4, run: 4, evaluate: 4, sandbox: 4 },
    sliceMs: 100,
    holdsRunSlot: false,
    modelMs: 0,
    toolMs: 0,
    ...rest,
  };
}

describe("where the time of a step's rollouts goes", () => {
  it("is told by stage, by the model's and the tools' part of it, and by what came after", () => {
    const time = whereTimeGoes(
      input({
        spans: [
          { rollout: 0, stage: 0, readyMs: 0, startedMs: 100, endedMs: 200 },
          { rollout: 0, stage: 1, readyMs: 200, startedMs: 250, endedMs: 450 },
          { rollout: 0, stage: 2, readyMs: 450, startedMs: 450, endedMs: 500 },
        ],
        settledMs: [500],
        modelMs: 120,
        toolMs: 50,
      }),
    );
    expect(time).toMatchObject({ admission: 150, setUp: 100, model: 120, tools: 50, loop: 30, grading: 50 });
    expect(time).toMatchObject({ siblings: 300, trainer: 200, lost: 0 });
  });

  it("names the slot that was used up, slice by slice", () => {
    const init = [4, 4, 4, 0, 0, 0, 0, 0, 0, 0];
    const waiting = (stage: number) => [{ rollout: 0, stage, readyMs: 0, startedMs: 500, endedMs: null }];
    const lanes = { init, run: lane(4), evaluate: lane(3.7), sandbox: lane(4) };
    expect(whereTimeGoes(input({ spans: waiting(0), settledMs: [null], lanes }))).toMatchObject({
      initSlot: 300,
      sandbox: 200,
      setUp: 500,
    });
    expect(whereTimeGoes(input({ spans: waiting(1), settledMs: [null], lanes })).runSlot).toBe(500);
    expect(whereTimeGoes(input({ spans: waiting(2), settledMs: [null], lanes })).gradeSlot).toBe(500);
    const free = { ...lanes, evaluate: lane(1), sandbox: lane(1) };
    expect(whereTimeGoes(input({ spans: waiting(2), settledMs: [null], lanes: free })).admission).toBe(500);
  });

  it("names the run slot before init where the policy holds one from there on", () => {
    const spans = [{ rollout: 0, stage: 0, readyMs: 0, startedMs: 500, endedMs: null }];
    const lanes = { init: lane(1), run: lane(2), evaluate: lane(1), sandbox: lane(0) };
    expect(whereTimeGoes(input({ spans, settledMs: [null], lanes, holdsRunSlot: true })).runSlot).toBe(500);
    expect(whereTimeGoes(input({ spans, settledMs: [null], lanes })).admission).toBe(500);
  });

  it("counts what a replaced attempt did as lost", () => {
    const spans = [
      { rollout: 0, stage: 0, readyMs: 0, startedMs: 0, endedMs: 100 },
      { rollout: 0, stage: 1, readyMs: 100, startedMs: 100, endedMs: 400 },
      { rollout: 0, stage: 0, readyMs: 400, startedMs: 500, endedMs: null, attempt: 2 },
    ];
    const all = input({ spans, settledMs: [null] });
    const time = whereTimeGoes({ ...all, schedule: { ...all.schedule, rollouts: rolloutsOf([null], 2) } });
    expect(time).toMatchObject({ lost: 400, setUp: 500, admission: 100 });
  });

  it("never tells more of calls than the stage took", () => {
    const spans = [{ rollout: 0, stage: 1, readyMs: 0, startedMs: 0, endedMs: 200 }];
    expect(whereTimeGoes(input({ spans, settledMs: [200], modelMs: 500, toolMs: 90 }))).toMatchObject({
      model: 200,
      tools: 0,
      loop: 0,
    });
  });

  it("leaves no millisecond out and counts none twice", () => {
    const cut = fc.array(fc.integer({ min: 0, max: 800 }), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(cut, { minLength: 1, maxLength: 6 }), fc.nat(900), fc.nat(900), (rows, modelMs, toolMs) => {
        const sorted = rows.map((row) => row.toSorted((a, b) => a - b));
        const spans = sorted.flatMap((at, rollout) =>
          [0, 1, 2].map((stage) => ({
            rollout,
            stage,
            readyMs: at[Math.max(0, 2 * stage - 1)] ?? 0,
            startedMs: at[2 * stage] ?? 0,
            endedMs: at[2 * stage + 1] ?? 0,
          })),
        );
        const settledMs = sorted.map((at) => at[5] ?? 0);
        const time = whereTimeGoes(input({ spans, settledMs, modelMs, toolMs, holdsRunSlot: modelMs % 2 === 0 }));
        const whole = sorted.reduce((sum, at) => sum + 1000 - (at[0] ?? 0), 0);
        expect(Object.values(time).reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(whole, 6);
      }),
    );
  });
});
