import { describe, expect, it } from "vitest";
import { Demand } from "./demand.ts";

describe("what should stand ready", () => {
  it("is what clients told, each for itself, until it was opened or its time is over", () => {
    const demand = new Demand();
    demand.tell("one", 3, 1_000);
    demand.tell("other", 4, 2_000);
    expect(demand.target(0, 100)).toBe(7);
    demand.opened("one", 0);
    expect(demand.target(0, 100)).toBe(6);
    // Told anew, and told that there is no more: the other's stays.
    demand.tell("one", 5, 1_000);
    expect(demand.target(0, 100)).toBe(9);
    demand.tell("one", 0, 1_000);
    expect([demand.target(0, 100), demand.target(0, 2), demand.target(2_000, 100)]).toEqual([4, 2, 0]);
  });

  it("is else what the last minute's pace takes while one starts", () => {
    const demand = new Demand();
    demand.opened("one", 0);
    expect(demand.target(0, 100)).toBe(0);
    for (let n = 1; n < 60; n += 1) demand.opened("one", n * 1_000);
    expect([demand.target(59_000, 100), demand.target(59_000, 2), demand.target(200_000, 100)]).toEqual([3, 2, 0]);
  });

  it("hears of as many clients as it can keep", () => {
    const demand = new Demand();
    for (let n = 0; n < 3_000; n += 1) demand.tell(`client ${n}`, 1, 1_000);
    expect(demand.target(0, 100_000)).toBe(1_000);
  });
});
