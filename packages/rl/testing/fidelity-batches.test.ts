import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type FidelityBatch, fidelityBatches, fidelityClip } from "./fidelity-batches.ts";

const file = path.resolve(import.meta.dirname, "../../../infra/fidelity/batches/batches.json");
const batches = fidelityBatches();
const random = batches.filter(({ seed }) => seed !== null);

/** ρ = e^(new − old) of the trained tokens, with the advantage of their row. */
const ratios = (batch: FidelityBatch) =>
  batch.mask.flatMap((row, i) =>
    row.flatMap((kept, t) =>
      kept === 1
        ? [
            {
              ratio: Math.exp((batch.new[i]?.[t] ?? 0) - (batch.old[i]?.[t] ?? 0)),
              advantage: batch.advantages[i] ?? 0,
            },
          ]
        : [],
    ),
  );
const rewardsByGroup = (batch: FidelityBatch): number[][] => {
  const groups = new Map<number, number[]>();
  batch.groups.forEach((group, row) => {
    groups.set(group, [...(groups.get(group) ?? []), batch.rewards[row] ?? 0]);
  });
  return [...groups.values()];
};

describe("the committed batches", () => {
  it("are what the generator makes", () => {
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(batches);
  });

  it("are fifty random ones and those of the vectors A to E", () => {
    expect(random).toHaveLength(50);
    expect(new Set(batches.map(({ name }) => name)).size).toBe(54);
  });

  it.each(random)("$name has each of the cases that packages treat differently", (batch) => {
    const trained = batch.mask.map((row) => row.filter((kept) => kept === 1).length);
    expect(trained).toContain(0);
    const groups = rewardsByGroup(batch);
    expect(groups.some((rewards) => rewards.length === 1)).toBe(true);
    expect(groups.some((rewards) => rewards.length > 1 && new Set(rewards).size === 1)).toBe(true);
    expect(new Set(trained).size).toBeGreaterThan(1);
    const { low, high, dual } = fidelityClip;
    for (const sign of [-1, 1]) {
      const ofSign = ratios(batch).filter(({ advantage }) => advantage * sign > 0);
      expect(ofSign.some(({ ratio }) => ratio < low)).toBe(true);
      expect(ofSign.some(({ ratio }) => ratio > high)).toBe(true);
      expect(ofSign.some(({ ratio }) => ratio > dual)).toBe(true);
    }
    expect(Math.max(...batch.new.flat(), ...batch.old.flat(), ...batch.rollout.flat())).toBeLessThanOrEqual(0);
  });

  it("hold log-probs of four decimals, rows of at most twelve tokens and groups of at most four", () => {
    for (const batch of random) {
      for (const value of [...batch.new, ...batch.old, ...batch.rollout, ...batch.ref].flat()) {
        expect(Math.abs(value * 1e4 - Math.round(value * 1e4))).toBeLessThan(1e-6);
      }
      expect(Math.max(...batch.mask.map((row) => row.length))).toBeLessThanOrEqual(12);
      expect(Math.max(...rewardsByGroup(batch).map((rewards) => rewards.length))).toBeLessThanOrEqual(4);
    }
  });
});
