import { FleetDemand } from "@rolldeck/contracts/fleet";
import { Prices } from "@rolldeck/contracts/prices";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chargedDevices, costParts, type RunUsage, runCost } from "./run-cost.ts";

const unused: RunUsage = {
  gpuHours: 0,
  sandboxHours: 0,
  judgeTokens: 0,
  hostedPromptTokens: 0,
  hostedSampledTokens: 0,
  hostedTrainedTokens: 0,
  trainedGroups: 0,
};

it("by hand: hours, tokens by the million, and a group's share", () => {
  const prices = Prices.parse({ gpuHour: 2, sandboxHour: 0.1, judgeMillionTokens: 4 });
  const cost = runCost({ ...unused, gpuHours: 3, sandboxHours: 20, judgeTokens: 500_000, trainedGroups: 5 }, prices);
  expect(cost.parts).toEqual({ gpu: 6, sandbox: 2, judge: 2, hosted: 0 });
  expect(cost).toMatchObject({ total: 10, perTrainedGroup: 2, unpriced: [] });
});

it.each([
  [null, 1],
  [{ devices: 8 }, 8],
  [{ layout: "split", devices: 2, replicas: 3, replicaDevices: 4 }, 14],
])("a run is charged for every device that it has: %o", (demand, devices) => {
  expect(chargedDevices(demand === null ? null : FleetDemand.parse(demand))).toBe(devices);
});

it("what was used and has no price is named, not free", () => {
  const cost = runCost({ ...unused, gpuHours: 1, sandboxHours: 2, trainedGroups: 1 }, Prices.parse({ gpuHour: 3 }));
  expect(cost).toEqual({
    parts: { gpu: 3, sandbox: null, judge: 0, hosted: 0 },
    total: 3,
    perTrainedGroup: 3,
    unpriced: ["sandboxHour"],
  });
});

const amount = fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 1e9, noNaN: true }));
const Usage: fc.Arbitrary<RunUsage> = fc.record({
  gpuHours: amount,
  sandboxHours: amount,
  judgeTokens: amount,
  hostedPromptTokens: amount,
  hostedSampledTokens: amount,
  hostedTrainedTokens: amount,
  trainedGroups: fc.nat(10_000),
});
const price = fc.option(fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 1e4, noNaN: true })));
const AnyPrices: fc.Arbitrary<Prices> = fc.record({
  currency: fc.constant("EUR"),
  gpuHour: price,
  sandboxHour: price,
  judgeMillionTokens: price,
  hostedPromptMillionTokens: price,
  hostedSampledMillionTokens: price,
  hostedTrainedMillionTokens: price,
});

describe("for any use and prices", () => {
  it("the total is the sum of the known parts, and everything is finite and ≥ 0", () => {
    fc.assert(
      fc.property(Usage, AnyPrices, (usage, prices) => {
        const { parts, total, perTrainedGroup, unpriced } = runCost(usage, prices);
        const known = costParts.map((part) => parts[part]).filter((value) => value !== null);
        expect(total).toBe(known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0));
        for (const value of [...known, total ?? 0, perTrainedGroup ?? 0])
          expect(Number.isFinite(value) && value >= 0).toBe(true);
        expect(perTrainedGroup === null).toBe(total === null || usage.trainedGroups === 0);
        for (const name of unpriced) expect(prices[name]).toBeNull();
      }),
    );
  });
  it("more use never costs less, and twice the use is twice the cost", () => {
    fc.assert(
      fc.property(Usage, AnyPrices, (usage, prices) => {
        const twice = Object.fromEntries(Object.entries(usage).map(([name, value]) => [name, value * 2]));
        const [once, doubled] = [runCost(usage, prices), runCost({ ...usage, ...twice }, prices)];
        if (once.total === null) expect(doubled.total).toBeNull();
        else expect(doubled.total).toBeCloseTo(2 * once.total, 3);
        const more = runCost({ ...usage, sandboxHours: usage.sandboxHours + 1 }, prices);
        if (prices.sandboxHour !== null) expect(more.total ?? 0).toBeGreaterThanOrEqual(once.total ?? 0);
      }),
    );
  });
  it("nothing used costs nothing at any price, and is never unpriced", () => {
    fc.assert(
      fc.property(AnyPrices, (prices) => {
        expect(runCost(unused, prices)).toMatchObject({ total: 0, unpriced: [] });
      }),
    );
  });
});
