import { describe, expect, test } from "vitest";
import { laneAt, lanesIn, layOut, pan, timeTicks, within, zoom } from "./gantt-layout.ts";

const rollouts = (groups: number, size: number) => {
  const count = groups * size;
  const each = <T>(of: (at: number) => T) => Array.from({ length: count }, (_, at) => of(at));
  return {
    rolloutId: each((at) => `rollout${at}`),
    group: each((at) => Math.floor(at / size)),
    sample: each((at) => at % size),
    attempt: each(() => 1),
    state: each(() => "settled" as const),
    ending: each(() => null),
    settledMs: each(() => null),
  };
};
const spans = {
  rollout: [1, 0, 1],
  attempt: [1, 1, 1],
  stage: [0, 0, 1],
  readyMs: [0, 0, 5],
  startedMs: [1, 1, 6],
  endedMs: [5, 4, 9],
};
const whole = { fromMs: 0, toMs: 1000 };

describe("lanes", () => {
  test("stand by group and sample, with a gap between groups, and are found by height", () => {
    const layout = layOut({ rollouts: rollouts(3, 2), spans });
    expect([...layout.tops]).toEqual([0, 14, 34, 48, 68, 82]);
    expect(layout.height).toBe(96);
    expect(layout.spansOf.slice(0, 2)).toEqual([[1], [0, 2]]);
    expect([0, 13.9, 14, 29, 34, 95.9, 96].map((y) => laneAt(layout, y))).toEqual([0, 0, 1, null, 2, 5, null]);
    expect(laneAt(layout, -1)).toBeNull();
  });
  test("of many rollouts are thinner; a window shows those in it", () => {
    const layout = layOut({ rollouts: rollouts(512, 8), spans });
    expect(layout.laneHeight).toBe(4);
    const [first, end] = lanesIn(layout, 1000, 400);
    expect(layout.tops[first]).toBeLessThanOrEqual(1000);
    expect(layout.tops[end - 1]).toBeLessThanOrEqual(1400);
    expect(end - first).toBeLessThan(110);
  });
});

describe("what is shown of the time", () => {
  test("is zoomed about a moment that stays where it is", () => {
    const view = zoom(whole, whole, 250, 0.5);
    expect(view).toEqual({ fromMs: 125, toMs: 625 });
    expect((250 - view.fromMs) / (view.toMs - view.fromMs)).toBeCloseTo(0.25);
  });
  test("never leaves the whole, and never gets too narrow or too wide", () => {
    expect(zoom(whole, whole, 500, 3)).toEqual(whole);
    expect(zoom({ fromMs: 0, toMs: 30 }, whole, 0, 0.1)).toEqual({ fromMs: 0, toMs: 20 });
    expect(pan({ fromMs: 700, toMs: 900 }, whole, 500)).toEqual({ fromMs: 800, toMs: 1000 });
    expect(within({ fromMs: -400, toMs: -100 }, whole)).toEqual({ fromMs: 0, toMs: 300 });
  });
  test("has round moments on its axis", () => {
    expect(timeTicks({ fromMs: 0, toMs: 60_000 }, 6)).toEqual([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    expect(timeTicks({ fromMs: 130, toMs: 1000 }, 4)).toEqual([500, 1000]);
  });
});
