import { describe, expect, it } from "vitest";
import { Demand } from "./demand.ts";

describe("demand", () => {
  it("is what was told, less what came, until its time has passed", () => {
    const demand = new Demand();
    demand.tell("one", 5, 10_000);
    expect(demand.target(0, 100)).toBe(5);
    demand.opened("one", 1_000);
    expect(demand.target(1_000, 100)).toBe(4);
    expect(demand.target(1_000, 3)).toBe(3);
    expect(demand.target(10_000, 100)).toBe(0);
  });

  it("follows the last minute's pace, and one alone is none", () => {
    const demand = new Demand();
    demand.opened("one", 0);
    expect(demand.target(0, 100)).toBe(0);
    for (let n = 0; n < 99; n += 1) demand.opened("one", 100);
    expect(demand.target(1_000, 100)).toBe(5);
    expect(demand.target(70_000, 100)).toBe(0);
  });

  it("of one client is not changed by another", () => {
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

  it("hears of as many clients as it can keep", () => {
    const demand = new Demand();
    for (let n = 0; n < 3_000; n += 1) demand.tell(`client ${n}`, 1, 1_000);
    expect(demand.target(0, 100_000)).toBe(1_000);
  });
});
