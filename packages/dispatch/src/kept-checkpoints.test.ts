import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CheckpointFacts, keptCheckpoints } from "./kept-checkpoints.ts";

const plain = (version: number, more: Partial<CheckpointFacts> = {}): CheckpointFacts => ({
  version,
  pinned: false,
  isParent: false,
  served: false,
  measure: null,
  awaited: false,
  ...more,
});
const stays = (checkpoints: readonly CheckpointFacts[], policy: Parameters<typeof keptCheckpoints>[1]) =>
  [...keptCheckpoints(checkpoints, policy)].flatMap(([version, why]) => (why.length > 0 ? [version] : []));
const byReward = { count: 1, metric: "reward/mean", better: "higher" } as const;

describe("what a run keeps", () => {
  test("the newest n, and what it began with", () => {
    const all = [0, 10, 20, 30, 40].map((version) => plain(version));
    expect(stays(all, { keep: 2, keepBest: null })).toEqual([0, 30, 40]);
  });

  test("the best beside the newest; of equal ones the newer", () => {
    const all = [plain(1, { measure: 0.9 }), plain(2, { measure: 0.9 }), plain(3, { measure: 0.1 }), plain(4)];
    expect(stays(all, { keep: 1, keepBest: byReward })).toEqual([2, 4]);
    expect(stays(all, { keep: 1, keepBest: { ...byReward, count: 2 } })).toEqual([1, 2, 4]);
    expect(stays(all, { keep: 1, keepBest: { ...byReward, better: "lower" } })).toEqual([3, 4]);
  });

  test("the best may be among the newest: then nothing older stays for it", () => {
    const all = [plain(1, { measure: 0.2 }), plain(2, { measure: 0.7 })];
    expect(stays(all, { keep: 1, keepBest: byReward })).toEqual([2]);
    expect(keptCheckpoints(all, { keep: 1, keepBest: byReward }).get(2)).toEqual(["newest", "last", "best"]);
  });

  test("one whose measurement is under way waits for it, where the best are kept", () => {
    const all = [plain(1, { awaited: true }), plain(2)];
    expect(stays(all, { keep: 1, keepBest: byReward })).toEqual([1, 2]);
    expect(stays(all, { keep: 1, keepBest: null })).toEqual([2]);
  });

  test("a measure that is no number is none", () => {
    const all = [plain(1, { measure: Number.NaN }), plain(2, { measure: Number.POSITIVE_INFINITY }), plain(3)];
    expect(stays(all, { keep: 1, keepBest: byReward })).toEqual([3]);
  });
});

const anyCheckpoints = fc.uniqueArray(
  fc.record({
    version: fc.nat({ max: 60 }),
    pinned: fc.boolean(),
    isParent: fc.boolean(),
    served: fc.boolean(),
    measure: fc.option(fc.oneof(fc.double(), fc.constantFrom(0, 0.5, 1))),
    awaited: fc.boolean(),
  }),
  { selector: ({ version }) => version, maxLength: 30 },
);
const anyPolicy = fc.record({
  keep: fc.integer({ min: 1, max: 6 }),
  keepBest: fc.option(
    fc.record({
      count: fc.integer({ min: 1, max: 6 }),
      metric: fc.constant("evaluate/success" as const),
      better: fc.constantFrom("higher" as const, "lower" as const),
    }),
  ),
});

describe("for any checkpoints and any rule", () => {
  test("the newest stays, and whatever is kept for another reason than the rule", () => {
    fc.assert(
      fc.property(anyCheckpoints, anyPolicy, (checkpoints, policy) => {
        const kept = new Set(stays(checkpoints, policy));
        const newest = Math.max(...checkpoints.map(({ version }) => version));
        for (const { version, pinned, isParent, served } of checkpoints)
          if (version === newest || version === 0 || pinned || isParent || served) expect(kept).toContain(version);
      }),
    );
  });

  test("never more than the rule allows stay for the rule alone", () => {
    fc.assert(
      fc.property(anyCheckpoints, anyPolicy, (checkpoints, policy) => {
        const reasons = [...keptCheckpoints(checkpoints, policy).values()];
        const counted = (reason: string) => reasons.filter((each) => each.some((own) => own === reason)).length;
        expect(counted("last")).toBeLessThanOrEqual(policy.keep);
        expect(counted("best")).toBeLessThanOrEqual(policy.keepBest?.count ?? 0);
      }),
    );
  });

  test("nothing that goes is better, or as good and newer, than something kept as best", () => {
    fc.assert(
      fc.property(anyCheckpoints, anyPolicy, (checkpoints, policy) => {
        const kept = keptCheckpoints(checkpoints, policy);
        const sign = policy.keepBest?.better === "lower" ? -1 : 1;
        const measured = checkpoints.flatMap(({ version, measure }) =>
          version > 0 && measure !== null && Number.isFinite(measure) ? [{ version, worth: sign * measure }] : [],
        );
        const best = measured.filter(({ version }) => kept.get(version)?.includes("best"));
        const others = measured.filter(({ version }) => !kept.get(version)?.includes("best"));
        if (policy.keepBest !== null) expect(best).toHaveLength(Math.min(policy.keepBest.count, measured.length));
        for (const one of best)
          for (const other of others)
            expect(one.worth > other.worth || (one.worth === other.worth && one.version > other.version)).toBe(true);
      }),
    );
  });

  test("the order they come in does not matter, and what stays stays when asked again", () => {
    fc.assert(
      fc.property(anyCheckpoints, anyPolicy, (checkpoints, policy) => {
        const once = new Set(stays(checkpoints, policy));
        expect(new Set(stays([...checkpoints].reverse(), policy))).toEqual(once);
        const left = checkpoints.filter(({ version }) => once.has(version));
        expect(new Set(stays(left, policy))).toEqual(once);
      }),
    );
  });
});
