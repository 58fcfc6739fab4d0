import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gpuHost, worker } from "../../testing/fleet-world.ts";
import { fitWorkers, type Room, shareOf } from "./fit-workers.ts";

const needs = (...sizes: readonly number[]) => sizes.map((devices, at) => worker({ id: `w${at}`, devices }));
const rooms = (...sizes: readonly number[]): Room[] =>
  sizes.map((size, at) => ({
    ...{ host: `h${at}`, share: "all" },
    devices: gpuHost(`h${at}`, Array(size).fill(80_000)).devices,
  }));

/** By trying every host for every worker; devices of one size. */
function fitsByForce(sizes: readonly number[], free: readonly number[]): boolean {
  const [size, ...rest] = sizes;
  if (size === undefined) return true;
  return free.some((room, at) => room >= size && fitsByForce(rest, free.with(at, room - size)));
}

describe("fitWorkers", () => {
  test("finds the way where filling the tightest host first finds none", () => {
    const placements = fitWorkers(needs(3, 2, 2, 2), rooms(4, 5));
    expect(placements?.map((placement) => [placement.workerId, placement.devices.length])).toEqual([
      ["w0", 3],
      ["w1", 2],
      ["w2", 2],
      ["w3", 2],
    ]);
  });

  test("takes the smallest GPUs that serve and leaves the large ones", () => {
    const { devices } = gpuHost("a", [80_000, 24_000, 40_000]);
    const placements = fitWorkers([worker({ id: "w", memoryMb: 30_000 })], [{ host: "a", devices }]);
    expect(placements).toEqual([{ workerId: "w", host: "a", devices: ["GPU-a-2"] }]);
  });

  test("goes back to where it was, then to the tightest host", () => {
    expect(fitWorkers([worker({ id: "w", host: "h0" })], rooms(4, 1))?.[0]?.host).toBe("h0");
    expect(fitWorkers([worker({ id: "w" })], rooms(4, 1))?.[0]?.host).toBe("h1");
  });

  test("keeps the workers of one host on one host", () => {
    expect(fitWorkers(needs(3), rooms(2, 2))).toBeNull();
  });

  test("fits exactly when trying everything does, and gives each device once", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(sizes, fc.array(fc.nat({ max: 6 }), { maxLength: 4 }), (wanted, free) => {
        const placements = fitWorkers(needs(...wanted), rooms(...free));
        expect(placements !== null).toBe(fitsByForce(wanted, free));
        const given = placements?.flatMap((placement) => placement.devices) ?? [];
        expect(new Set(given).size).toBe(given.length);
        for (const { workerId, host, devices } of placements ?? []) {
          expect(devices).toHaveLength(wanted[Number(workerId.slice(1))] ?? -1);
          for (const device of devices) expect(device).toContain(`GPU-${host}-`);
        }
      }),
    );
  });

  test("keeps a group where its files are shared: it fits exactly when it fits one of the shares", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 5 });
    const hosts = fc.array(
      fc.record({ size: fc.nat({ max: 5 }), share: fc.option(fc.constantFrom("x", "y"), { nil: undefined }) }),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(sizes, hosts, (wanted, free) => {
        const all = rooms(...free.map(({ size }) => size)).map(({ host, devices }, at): Room => {
          const share = free[at]?.share;
          return { host, devices, ...(share === undefined ? {} : { share }) };
        });
        const shares = new Set(all.map(shareOf));
        const sizeOf = (share: string) =>
          all.filter((room) => shareOf(room) === share).map((room) => room.devices.length);
        const placements = fitWorkers(needs(...wanted), all);
        expect(placements !== null).toBe([...shares].some((share) => fitsByForce(wanted, sizeOf(share))));
        const used = placements
          ?.map(({ host }) => all.find((room) => room.host === host))
          .filter((room) => room !== undefined);
        expect(new Set(used?.map(shareOf)).size).toBeLessThanOrEqual(1);
        for (const share of shares)
          for (const { host } of fitWorkers(needs(...wanted), all, share) ?? [])
            expect(all.filter((room) => shareOf(room) === share).map((room) => room.host)).toContain(host);
      }),
    );
  });

  test("a large fleet is planned without trying everything", () => {
    const hosts = Array.from({ length: 300 }, (_, at) => ({
      ...{ host: `h${at}`, share: "all" },
      devices: gpuHost(`h${at}`, Array(7).fill(80_000)).devices,
    }));
    expect(fitWorkers(needs(...Array(16).fill(8)), hosts)).toBeNull();
    expect(fitWorkers(needs(...Array(16).fill(4)), hosts)).toHaveLength(16);
  });
});
