import { AlgorithmConfig } from "@rolldeck/contracts/algorithm-config";
import { endingNames, endingRule } from "@rolldeck/contracts/endings";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildTrajectory, type WrittenTurn } from "../testing/build-trajectory.ts";
import { buildUpdate, type UpdateGroup, type UpdateRollout } from "./build-update.ts";
import { decodeMask, trainedTokens } from "./mask-reasons.ts";
import { toDatum } from "./to-datum.ts";
import { whyNotUsable } from "./usable-rollouts.ts";

const algorithm = (overrides: Partial<Algorithm> = {}) => ({ ...AlgorithmConfig.parse({}), ...overrides });
type Algorithm = ReturnType<typeof AlgorithmConfig.parse>;

const rollout = (rolloutId: string, reward: number | null, overrides: Partial<UpdateRollout> = {}): UpdateRollout => ({
  rolloutId,
  attempt: 1,
  ending: "finish_tool",
  reward,
  trajectory: buildTrajectory([{ prompt: [1, 2], sampled: [3, 4] }]),
  ...overrides,
});
const group = (groupId: string, rollouts: UpdateRollout[]): UpdateGroup => ({ groupId, rollouts });
const update = (groups: UpdateGroup[], overrides: Partial<Algorithm> = {}, maxContextTokens = 100) =>
  buildUpdate({ groups, algorithm: algorithm(overrides), maxContextTokens });
const advantagesById = (rows: readonly { rolloutId: string; advantage: number }[]) =>
  Object.fromEntries(rows.map((row) => [row.rolloutId, Math.round(row.advantage * 1e6) / 1e6]));

/** `turns` turns whose prompts never continue each other: one row each. */
const brokenTurns = (turns: number): WrittenTurn[] =>
  Array.from({ length: turns }, (_, t) => ({ prompt: [50 + t], sampled: [1, 2] }));
const joinedTurns = (turns: number): WrittenTurn[] => {
  const written: WrittenTurn[] = [];
  let history: number[] = [];
  for (let t = 0; t < turns; t++) {
    const prompt = [...history, 50 + t];
    written.push({ prompt, sampled: [1, 2] });
    history = [...prompt, 1, 2];
  }
  return written;
};

describe("buildUpdate", () => {
  it("keeps a cut rollout's reward in the mean and its tokens out of training (vector B)", () => {
    const long = buildTrajectory([{ prompt: [1], sampled: Array.from({ length: 20 }, () => 7) }]);
    const groups = [
      group("g", [rollout("a", 1), rollout("b", 0), rollout("c", 0), rollout("d", 0, { trajectory: long })]),
    ];
    const { rows, stats } = update(groups, {}, 10);
    expect(advantagesById(rows)).toEqual({ a: 1, b: -0.333333, c: -0.333333, d: -0.333333 });
    expect(rows.map((row) => row.sent)).toEqual([true, true, true, false]);
    expect(stats.maskedTokens["over-length"]).toBe(20);
    expect(stats.untrainedRollouts).toEqual({ "over-length": 1 });
    // N counts the masked one.
    expect(rows[0]?.scale).toBeCloseTo(1 / (4 * 10), 12);
  });

  it("faults 22, 27: leaves unscored rollouts out and their siblings alone", () => {
    const groups = [
      group("g", [
        rollout("a", 1),
        rollout("b", null),
        rollout("c", 0),
        rollout("d", Number.NaN),
        rollout("e", 0, { ending: "sandbox_lost" }),
      ]),
      group("missing", [rollout("x", null), rollout("y", null)]),
      group("below", [rollout("p", -1), rollout("q", -1), rollout("r", null, { ending: "infrastructure" })]),
    ];
    const { rows, stats } = update(groups);
    expect(advantagesById(rows.filter((row) => row.sent))).toEqual({ a: 1, c: -1 });
    expect(rows.some((row) => ["x", "y"].includes(row.rolloutId))).toBe(false);
    expect(stats).toMatchObject({ groups: 3, droppedGroups: 1, rollouts: 10, scoredRollouts: 4, sentRows: 2 });
    expect(stats.zeroVarianceGroups).toBe(1);
    expect(stats.untrainedRollouts).toEqual({ "no-reward": 2, "ending-failed": 2, "zero-variance": 2 });
    for (const row of rows) {
      expect(Number.isFinite(row.advantage) && Number.isFinite(row.scale)).toBe(true);
    }
  });

  it("fault 29: says which of three causes left nothing to train, with counts", () => {
    const unlogged = buildTrajectory([{ prompt: [1], sampled: [2], logprobs: null }]);
    const said = (rollouts: UpdateRollout[]) => whyNotUsable(3, update([group("g", rollouts)]).stats);
    expect(said([rollout("a", 0, { trajectory: unlogged }), rollout("b", 1, { trajectory: unlogged })])).toBe(
      "Step 3: of 2 rollouts 0 are usable; 2 × no log-prob from the sampler.",
    );
    expect(said([rollout("a", 1), rollout("b", 1)])).toBe(
      "Step 3: of 2 rollouts 0 are usable; 2 × all rewards of the group are equal.",
    );
    expect(said([rollout("a", null), rollout("b", null)])).toBe(
      "Step 3: of 2 rollouts 0 are usable; 2 × its group is not trained, because rollouts of it have no reward.",
    );
    const never = { segments: [], turns: [] };
    expect(said([rollout("a", 1), rollout("b", 0), rollout("c", null), rollout("d", 0, { trajectory: never })])).toBe(
      "Step 3: of 4 rollouts 2 are usable; 1 × no reward to learn from, 1 × nothing was sampled.",
    );
    expect(said([rollout("a", 1), rollout("b", 0)])).toBeNull();
    const reasons = (rollouts: UpdateRollout[]) => update([group("g", rollouts)]).stats.untrainedRollouts;
    expect(reasons([rollout("a", 0, { trajectory: unlogged }), rollout("b", 1, { trajectory: unlogged })])).toEqual({
      "no-logprob": 2,
    });
    expect(reasons([rollout("a", 1), rollout("b", 1)])).toEqual({ "zero-variance": 2 });
    expect(update([group("g", [rollout("a", null)])]).stats.droppedGroups).toBe(1);
  });

  it("fault 25: counts each rollout once, only with its own siblings", () => {
    const turns = (count: number) => buildTrajectory(brokenTurns(count));
    const groups = [
      group("one", [
        rollout("a", 1, { trajectory: turns(3) }),
        rollout("b", 0),
        rollout("c", 0),
        rollout("d", 1, { trajectory: turns(3) }),
      ]),
      group("two", [rollout("e", 5), rollout("f", 3)]),
    ];
    const { rows, stats } = update(groups, { advantage: "dr-grpo" });
    expect(advantagesById(rows)).toEqual({ a: 0.5, b: -0.5, c: -0.5, d: 0.5, e: 1, f: -1 });
    expect(rows.filter((row) => row.rolloutId === "a").map((row) => row.advantage)).toEqual([0.5, 0.5, 0.5]);
    expect(stats.breaks).toBe(4);
  });

  it.each(["token-mean", "sequence-mean", "constant"] as const)(
    "%s: splitting a trajectory into rows changes neither advantage nor token weight",
    (normalisation) => {
      const weights = (shape: (turns: number) => WrittenTurn[]) =>
        update([group("g", [rollout("a", 1, { trajectory: buildTrajectory(shape(3)) }), rollout("b", 0)])], {
          normalisation,
        }).rows.map((row) => `${row.rolloutId} ${row.advantage} ${row.scale}`);
      expect(new Set(weights(brokenTurns))).toEqual(new Set(weights(joinedTurns)));
    },
  );

  it("skips zero-variance groups without changing anyone's denominator", () => {
    const groups = [group("even", [rollout("a", 1), rollout("b", 1)]), group("g", [rollout("c", 1), rollout("d", 0)])];
    for (const normalisation of ["token-mean", "sequence-mean", "constant"] as const) {
      const filtered = update(groups, { normalisation, filterZeroVariance: true });
      const kept = update(groups, { normalisation, filterZeroVariance: false });
      expect(filtered.rows.map((row) => row.sent)).toEqual([false, false, true, true]);
      expect(kept.rows.every((row) => row.sent)).toBe(true);
      expect(filtered.rows.map((row) => row.scale)).toEqual(kept.rows.map((row) => row.scale));
    }
  });

  it("drops a group with an unscored rollout when the policy says so", () => {
    const groups = [group("g", [rollout("a", 1), rollout("b", 0), rollout("c", null)])];
    expect(update(groups, { groupPolicy: "drop-group" })).toMatchObject({ rows: [], stats: { droppedGroups: 1 } });
    expect(update(groups, { groupPolicy: "shrink" }).stats.sentRows).toBe(2);
  });

  it.each(endingNames)("follows the table for ending %s", (ending) => {
    const rule = endingRule(ending);
    const groups = [group("g", [rollout("a", 1), rollout("b", 0), rollout("c", 0.25, { ending })])];
    for (const trainCut of [false, true]) {
      const { rows } = update(groups, { trainCut });
      const own = rows.find((row) => row.rolloutId === "c");
      expect(own?.sent).toBe(rule.trained || (trainCut && rule.kind === "cut"));
      expect(rows.find((row) => row.rolloutId === "a")?.advantage).toBeCloseTo(rule.inBaseline ? 0.875 : 1, 9);
    }
  });

  it("gives nothing, not an error, for a rollout that never sampled", () => {
    const empty = { segments: [], turns: [] };
    const groups = [group("g", [rollout("a", 1), rollout("b", 0), rollout("c", 0, { trajectory: empty })])];
    expect(update(groups).rows.map((row) => row.rolloutId)).toEqual(["a", "b"]);
    expect(update([])).toMatchObject({ rows: [], stats: { groups: 0, rows: 0 } });
  });

  it("conserves tokens for any step", () => {
    const shape = fc.record({
      turns: fc.integer({ min: 0, max: 4 }),
      broken: fc.boolean(),
      reward: fc.oneof(fc.constant(null), fc.double({ min: -2, max: 2, noNaN: true })),
      ending: fc.constantFrom(...endingNames),
    });
    const step = fc.array(fc.array(shape, { minLength: 1, maxLength: 5 }), { maxLength: 4 });
    const choice = fc.record({
      advantage: fc.constantFrom("rloo" as const, "grpo" as const, "dr-grpo" as const),
      normalisation: fc.constantFrom("token-mean" as const, "sequence-mean" as const, "constant" as const),
      trainCut: fc.boolean(),
    });
    fc.assert(
      fc.property(step, choice, (groups, overrides) => {
        const built = groups.map((shapes, g) =>
          group(
            `${g}`,
            shapes.map(({ turns, broken, reward, ending }, r) => {
              const trajectory = buildTrajectory(broken ? brokenTurns(turns) : joinedTurns(turns));
              return rollout(`${g}-${r}`, reward, { ending, trajectory });
            }),
          ),
        );
        const byId = new Map(built.flatMap((own) => own.rollouts).map((own) => [own.rolloutId, own]));
        const { rows, stats } = update(built, overrides);
        let trained = 0;
        for (const row of rows) {
          const datum = toDatum(row, byId.get(row.rolloutId)?.trajectory ?? { segments: [], turns: [] });
          const count = trainedTokens(row.mask);
          trained += count;
          expect(datum.weights.filter((weight) => weight === 1)).toHaveLength(count);
          expect(row.sent).toBe(count > 0);
          if (row.advantage !== 0) expect(datum.advantages.filter((value) => value !== 0)).toHaveLength(count);
          expect(decodeMask(row.mask)).toHaveLength(datum.targets.length + 1);
        }
        expect(stats.trainedTokens).toBe(trained);
      }),
    );
  });
});
