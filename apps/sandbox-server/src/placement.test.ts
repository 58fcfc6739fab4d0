import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { couldEver, type HostView, place } from "./placement.ts";
import { StartRate } from "./start-rate.ts";
import { UsageMeter } from "./usage.ts";

const host = (hostId: string, changes: Partial<HostView> = {}): HostView => ({
  ...{ hostId, accepting: true, mayStart: true, maxSandboxes: 10, memoryMb: 1000, sandboxes: 0, usedMemoryMb: 0 },
  ...{ hasImage: false, takesImages: true },
  ...changes,
});
const needs = { memoryMb: 100, onlyHost: null, withImage: true };

describe("placing", () => {
  it.each<[string, readonly HostView[], Partial<typeof needs> | { onlyHost: string }, string | null]>([
    ["the least loaded", [host("a", { sandboxes: 3 }), host("b", { sandboxes: 1 })], {}, "b"],
    ["one with the image before one with less", [host("a", { sandboxes: 9, hasImage: true }), host("b")], {}, "a"],
    ["another when that one is full", [host("a", { sandboxes: 10, hasImage: true }), host("b")], {}, "b"],
    ["another when its memory is", [host("a", { usedMemoryMb: 950, hasImage: true }), host("b")], {}, "b"],
    ["the one with most memory left", [host("a", { usedMemoryMb: 500 }), host("b", { usedMemoryMb: 400 })], {}, "b"],
    ["none that drains", [host("a", { accepting: false })], {}, null],
    ["none past its rate", [host("a", { mayStart: false })], {}, null],
    ["only the one that has it", [host("a"), host("b", { sandboxes: 9 })], { onlyHost: "b" }, "b"],
    ["images on hosts that take them", [host("a", { takesImages: false }), host("b", { sandboxes: 5 })], {}, "b"],
    ["none without an image on those", [host("a")], { withImage: false }, null],
  ])("takes %s", (_what, hosts, changes, expected) => {
    expect(place(hosts, { ...needs, ...changes })).toBe(expected);
  });

  it("never overfills a host, whatever comes", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 5 }), (asked, count) => {
        const hosts = Array.from({ length: count }, (_, at) => ({ ...host(String(at), { maxSandboxes: 8 }) }));
        for (const memoryMb of asked) {
          const chosen = place(hosts, { ...needs, memoryMb });
          const at = hosts.findIndex(({ hostId }) => hostId === chosen);
          const there = hosts[at];
          if (there === undefined) {
            const fits = hosts.some((each) => each.sandboxes < 8 && each.usedMemoryMb + memoryMb <= 1000);
            expect(fits).toBe(false);
          } else {
            hosts[at] = { ...there, sandboxes: there.sandboxes + 1, usedMemoryMb: there.usedMemoryMb + memoryMb };
          }
        }
        for (const { sandboxes, usedMemoryMb } of hosts) {
          expect(sandboxes).toBeLessThanOrEqual(8);
          expect(usedMemoryMb).toBeLessThanOrEqual(1000);
        }
      }),
    );
  });

  it("knows what could never be", () => {
    expect(couldEver([host("a", { sandboxes: 10, accepting: false })], needs)).toBe(true);
    expect(couldEver([host("a")], { ...needs, memoryMb: 1001 })).toBe(false);
    expect(couldEver([host("a")], { ...needs, onlyHost: "b" })).toBe(false);
  });
});

describe("the start rate", () => {
  it("lets a second's worth go at once, then as many as it says", () => {
    const rate = new StartRate(4, 0);
    let started = 0;
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 10) {
      while (rate.ready(nowMs)) {
        rate.take(nowMs);
        started += 1;
      }
    }
    expect(started).toBe(4 + 40);
  });

  it("below one a second starts one at a time", () => {
    const rate = new StartRate(0.5, 0);
    rate.take(0);
    expect([rate.ready(1_999), rate.ready(2_000)]).toEqual([false, true]);
  });
});

describe("usage", () => {
  it("adds up by run, and keeps to so many runs", () => {
    const meter = new UsageMeter();
    meter.add({ run: "a", cpus: 2, memoryMb: 100 }, 3);
    meter.add({ run: "a", cpus: 1, memoryMb: 0 }, 1);
    expect(meter.all()).toEqual([{ run: "a", sandboxSeconds: 4, reservedCpuSeconds: 7, reservedMemoryMbSeconds: 300 }]);
    for (let n = 0; n < 5_000; n += 1) meter.add({ run: `run-${n}`, cpus: 1, memoryMb: 1 }, 1);
    expect(meter.all().length).toBeLessThanOrEqual(1_001);
    expect(meter.all().reduce((sum, { sandboxSeconds }) => sum + sandboxSeconds, 0)).toBe(5_004);
  });
});
