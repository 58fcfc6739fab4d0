import type { EngineLoad } from "@rolldeck/contracts/plan";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AdaptiveInput, adaptRunLimit, holdMs } from "./adaptive.ts";

const now = 1_000_000;
const reading = (over: Partial<EngineLoad> = {}): EngineLoad => ({
  at: now,
  cacheUse: 0.8,
  running: 40,
  waiting: 0,
  ...over,
});
const adapt = (engine: Partial<EngineLoad>, over: Partial<AdaptiveInput> = {}) =>
  adaptRunLimit({
    now,
    bound: 96,
    current: { limit: 40, since: now - holdMs },
    engine: reading(engine),
    inRun: 40,
    inRunThen: 40,
    ...over,
  });

describe("adaptRunLimit", () => {
  test.each([
    ["grows by a quarter while the cache is roomy", { cacheUse: 0.5 }, {}, 50],
    ["grows only to where the cache stays clear of the mark", { cacheUse: 0.74 }, {}, 45],
    ["never above the bound", { cacheUse: 0.1 }, { bound: 44 }, 44],
    ["holds between", { cacheUse: 0.75 }, {}, null],
    ["holds up to the trimming mark", { cacheUse: 0.92 }, {}, null],
    ["trims a tenth when the cache is crowded", { cacheUse: 0.93 }, {}, 36],
    ["trims a tenth when requests queue inside the engine", { cacheUse: 0.2, waiting: 1 }, {}, 36],
    ["never below one", { waiting: 9 }, { current: { limit: 1, since: 0 }, inRun: 1 }, null],
    ["begins to trim at what runs, not at a bound far above it", { waiting: 3 }, { current: null, inRun: 50 }, 45],
    [
      "takes a small limit for used while one place changes hands",
      { cacheUse: 0.1 },
      { current: { limit: 6, since: now - holdMs }, inRun: 5, inRunThen: 5 },
      8,
    ],
    [
      "not a limit of one that nothing used",
      { cacheUse: 0 },
      { current: { limit: 1, since: 0 }, inRun: 1, inRunThen: 0 },
      null,
    ],
    ["does not grow what is not used", { cacheUse: 0.1 }, { inRun: 20, inRunThen: 20 }, null],
    [
      "does not take an engine that idled between two steps for a roomy one",
      { cacheUse: 0, running: 0 },
      { inRunThen: 3 },
      null,
    ],
    ["grows by what ran at the reading, not by what has begun since", { cacheUse: 0.7 }, { inRunThen: 36 }, 43],
    [
      "trims from what crowded it, of which few may be left",
      { waiting: 8, running: 30 },
      { inRun: 2, inRunThen: 2 },
      34,
    ],
    ["lets a trim tell before the next", { waiting: 3 }, { inRun: 41 }, null],
    ["not twice within the hold", { cacheUse: 0.1 }, { current: { limit: 40, since: now - holdMs + 1 } }, null],
    ["not on a reading from before the change", { at: now - holdMs, cacheUse: 0.1 }, {}, null],
    ["not on an old reading", { at: now - 15_001, cacheUse: 0.1 }, { current: null, bound: 20 }, null],
    ["not without a reading", {}, { engine: null }, null],
  ])("%s", (_, engine, over, to) => {
    expect(adapt(engine, over)?.to ?? null).toBe(to);
  });

  /** An engine whose cache fills with what runs, and that queues what does not fit; readings vary by `noise`. */
  function drive(input: { capacity: number; bound: number; noise: number; seed: number[] }) {
    let current: AdaptiveInput["current"] = null;
    const limits: number[] = [];
    for (let round = 0; round < 240; round++) {
      const at = now + round * holdMs;
      const inRun = Math.min(current?.limit ?? input.bound, input.bound);
      const wobble = 1 + input.noise * (input.seed[round % input.seed.length] ?? 0);
      const wants = (inRun / input.capacity) * wobble;
      const engine = {
        at,
        cacheUse: Math.min(1, wants),
        running: inRun,
        waiting: wants > 1 ? Math.ceil(inRun - input.capacity) : 0,
      };
      const change = adaptRunLimit({ now: at, bound: input.bound, current, engine, inRun, inRunThen: inRun });
      if (change !== null) current = { limit: change.to, since: at };
      limits.push(current?.limit ?? input.bound);
    }
    return limits;
  }

  test("on an engine that saturates it comes to rest, with the engine busy and nothing queueing", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 500 }), fc.integer({ min: 1, max: 4096 }), (capacity, bound) => {
        const limits = drive({ capacity, bound, noise: 0, seed: [0] });
        const rest = limits.at(-1) ?? 0;
        expect(limits.slice(-60).every((limit) => limit === rest)).toBe(true);
        expect(rest).toBeLessThanOrEqual(Math.max(1, capacity * 0.92));
        // What the bound allows, or as full as whole numbers let it be.
        if (rest < bound) expect(rest + 1).toBeGreaterThan(capacity * 0.75 * 0.9);
      }),
    );
  });

  test("noise of a few percent does not make it swing", () => {
    const unit = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 500 }),
        fc.array(unit, { minLength: 5, maxLength: 20 }),
        (capacity, seed) => {
          const limits = drive({ capacity, bound: 600, noise: 0.04, seed }).slice(-40);
          const turns = limits.filter((limit, at) => at > 0 && limit !== limits[at - 1]).length;
          expect(turns).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});
