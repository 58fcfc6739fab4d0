/** Any fleet, any wishes, any faults: what must hold whatever happens. */
import type { HostSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FleetWorld, gpuHost, worker } from "../../testing/fleet-world.ts";
import { fitWorkers } from "./fit-workers.ts";
import { planPlacement } from "./plan-placement.ts";

const memory = fc.constantFrom(24_000, 80_000);
const hosts = fc
  .array(
    fc.record({
      gpus: fc.array(memory, { maxLength: 4 }),
      cpus: fc.nat({ max: 2 }),
      // Most hosts share a mount, so that groups spread.
      share: fc.option(fc.constantFrom("x", "x", "x", "y"), { nil: undefined, freq: 4 }),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) =>
    list.map(({ gpus, cpus, share }, at): HostSnapshot => {
      const host = gpuHost(`h${at}`, gpus, share === undefined ? {} : { share });
      const places = Array.from({ length: cpus }, (_, place) => ({
        ...{ id: `h${at}-cpu-${place}`, kind: "cpu" as const, memoryMb: 4_096 },
      }));
      return { ...host, devices: [...host.devices, ...places] };
    }),
  );

const wish = fc.record({
  layout: fc.constantFrom("colocated" as const, "split" as const),
  device: fc.constantFrom("gpu" as const, "gpu" as const, "cpu" as const),
  devices: fc.integer({ min: 1, max: 3 }),
  samplers: fc.integer({ min: 1, max: 3 }),
  memoryMb: fc.constantFrom(0, 0, 40_000),
  priority: fc.constantFrom(0, 0, 1, 5),
  ticks: fc.integer({ min: 1, max: 4 }),
});
type Wish = typeof wish extends fc.Arbitrary<infer W> ? W : never;

function workersOf(run: Wish, at: number): WorkerSnapshot[] {
  const { device, priority } = run;
  const memoryMb = device === "cpu" ? 0 : run.memoryMb;
  const devices = device === "cpu" ? 1 : run.devices;
  const own = { runId: `r${at}`, device, priority, memoryMb };
  if (run.layout === "colocated") return [worker({ id: `r${at}`, ...own, devices })];
  return [
    worker({ id: `r${at}-t`, ...own, role: "trainer", devices }),
    ...Array.from({ length: run.samplers }, (_, place) => worker({ id: `r${at}-s${place}`, ...own, role: "sampler" })),
  ];
}

type Event =
  | { readonly type: "run"; readonly run: Wish }
  | { readonly type: "host"; readonly at: number; readonly state: "ready" | "lost" | "draining" }
  | { readonly type: "end"; readonly at: number }
  | { readonly type: "tick" };
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("run" as const), run: wish }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("host" as const),
      at: fc.nat({ max: 3 }),
      state: fc.constantFrom("ready" as const, "lost" as const, "lost" as const, "draining" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("end" as const), at: fc.nat({ max: 20 }) }) },
  { weight: 3, arbitrary: fc.constant({ type: "tick" as const }) },
);

/** Does what the events say; the world throws on a device that is leased twice. @returns the runs, by id */
function play(world: FleetWorld, events: readonly Event[], after: () => void): Map<string, WorkerSnapshot[]> {
  const runs = new Map<string, WorkerSnapshot[]>();
  for (const one of events) {
    if (one.type === "run") {
      const workers = workersOf(one.run, runs.size);
      runs.set(`r${runs.size}`, workers);
      world.add(workers, one.run.ticks);
    } else if (one.type === "host") {
      const host = world.hosts[one.at % world.hosts.length];
      if (host) world.setHost(host.name, one.state);
    } else if (one.type === "end") {
      const ended = world.workers[one.at];
      if (ended && ended.failures === 0) world.endContainer(ended.id);
    } else world.tick();
    world.settle();
    after();
  }
  return runs;
}

test("no device is leased twice, no lease outlives its worker's place, and no run holds a part that it can't use while all is well", () => {
  fc.assert(
    fc.property(hosts, fc.array(event, { maxLength: 25 }), (fleet, events) => {
      const world = new FleetWorld(fleet);
      play(world, events, () => {
        for (const id of world.leases.values()) {
          const holder = world.workers.find((one) => one.id === id);
          expect(["starting", "ready", "lost", "stopping"]).toContain(holder?.state);
        }
        for (const one of world.workers) {
          const held = [...world.leases.values()].filter((id) => id === one.id).length;
          expect(held).toBe(one.state === "starting" || one.state === "ready" ? one.devices : 0);
        }
      });
    }),
    { numRuns: 300 },
  );
});

test("after any faults, once the hosts are back, every run that fits the empty fleet comes to its end", () => {
  fc.assert(
    fc.property(hosts, fc.array(event, { maxLength: 25 }), (fleet, events) => {
      const world = new FleetWorld(fleet);
      const runs = play(world, events, () => undefined);
      for (const host of fleet) world.setHost(host.name, "ready");
      const rooms = fleet.map(({ name, ...host }) => ({ ...host, host: name }));
      const feasible = [...runs].filter(([, workers]) => fitWorkers(workers, rooms) !== null).map(([id]) => id);
      for (let at = 0; at < 40 + 12 * runs.size && !feasible.every((id) => world.isOver(id)); at += 1) {
        world.settle();
        world.tick();
      }
      expect(feasible.filter((id) => !world.isOver(id))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test("a big run is served however many small ones keep coming", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 3 }), fc.nat({ max: 5 }), (gpus, ticks, priority) => {
      const fleet = gpus.map((count, at) => gpuHost(`h${at}`, Array(count).fill(1)));
      const largest = Math.max(...gpus);
      const world = new FleetWorld(fleet);
      world.add(
        Array.from({ length: 6 }, (_, at) => worker({ id: `early-${at}` })),
        ticks,
      );
      world.settle();
      world.add([worker({ id: "big", devices: largest })], 1);
      // What comes later has a higher priority at times; its worth in waiting bounds how long that helps.
      for (let at = 0; at < 40 && !world.isOver("big"); at += 1) {
        world.add([worker({ id: `late-${at}`, priority: at === 0 ? priority : 0 })], ticks);
        world.settle();
        world.tick();
      }
      expect(world.isOver("big")).toBe(true);
    }),
  );
});

test("the plan depends on what the rows say, not on their order, and nothing is said again", () => {
  fc.assert(
    fc.property(hosts, fc.array(event, { maxLength: 15 }), fc.infiniteStream(fc.nat()), (fleet, events, dice) => {
      const world = new FleetWorld(fleet);
      play(world, events, () => expect(planPlacement(world.snapshot())).toEqual([]));
      world.add(
        workersOf({ layout: "split", device: "gpu", devices: 1, samplers: 2, memoryMb: 0, priority: 0, ticks: 1 }, 99),
        1,
      );
      const shuffled = <T>(list: readonly T[]): T[] =>
        list
          .map((item) => ({ item, key: dice.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ item }) => item);
      const { now, hosts: rows, workers, leases } = world.snapshot();
      const mixed = {
        now,
        hosts: shuffled(rows.map((host) => ({ ...host, devices: shuffled(host.devices) }))),
        workers: shuffled(workers),
        leases: shuffled(leases),
      };
      expect(planPlacement(mixed)).toEqual(planPlacement(world.snapshot()));
    }),
    { numRuns: 150 },
  );
});
