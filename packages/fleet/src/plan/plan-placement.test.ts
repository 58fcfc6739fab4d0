import type { FleetAction, HostSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import { describe, expect, test } from "vitest";
import { FleetWorld, gpuHost, tickMs, worker } from "../../testing/fleet-world.ts";
import { planPlacement } from "./plan-placement.ts";
import { priorityWorthMs } from "./waiting-line.ts";

const split = (runId: string, samplers: number, trainerDevices = 1): WorkerSnapshot[] => [
  worker({ id: `${runId}-t`, runId, role: "trainer", devices: trainerDevices }),
  ...Array.from({ length: samplers }, (_, at) => worker({ id: `${runId}-s${at}`, runId, role: "sampler" })),
];
/** Behind one network mount. */
const mount = { share: "nfs" };
const plan = (hosts: readonly HostSnapshot[], workers: readonly WorkerSnapshot[], now = 0): FleetAction[] =>
  planPlacement({ now, hosts, workers, leases: [] });
const brief = (actions: readonly FleetAction[]) =>
  actions.map((action) => [
    action.type,
    action.workerId,
    action.type === "place" ? action.devices.join() : action.reason.code,
  ]);

describe("planPlacement", () => {
  test("gives each worker devices by their ids, and says why the rest waits", () => {
    const hosts = [gpuHost("a", [80_000])];
    expect(brief(plan(hosts, [worker({ id: "w1" }), worker({ id: "w2" })]))).toEqual([
      ["place", "w1", "GPU-a-0"],
      ["queue", "w2", "no-room"],
    ]);
  });

  test("starts all workers of a split run together or none", () => {
    expect(brief(plan([gpuHost("a", [1, 1])], split("r", 2)))).toEqual([
      ["queue", "r-s0", "too-large"],
      ["queue", "r-s1", "too-large"],
      ["queue", "r-t", "too-large"],
    ]);
    const placed = plan([gpuHost("a", [1, 1], mount), gpuHost("b", [1], mount)], split("r", 2));
    expect(placed.map((action) => action.type)).toEqual(["place", "place", "place"]);
  });

  test("places a run's workers only where they share its files: on one host, or behind one network mount", () => {
    const own = gpuHost("b", [1]);
    expect(brief(plan([gpuHost("a", [1, 1]), own], split("r", 2))).map(([, , code]) => code)).toEqual(
      Array.from({ length: 3 }, () => "apart"),
    );
    const hosts = [gpuHost("a", [1, 1], mount), own, gpuHost("c", [1], mount), gpuHost("d", [1, 1, 1, 1])];
    const where = (actions: readonly FleetAction[]) => actions.map((action) => action.type === "place" && action.host);
    expect(where(plan(hosts, split("r", 2)))).toEqual(["c", "a", "a"]);
    expect(where(plan(hosts.slice(1), split("r", 2)))).toEqual(["d", "d", "d"]);
    // What lost one of its workers takes another place behind the same mount.
    const [trainer, ...samplers] = split("r", 2).map((one) => ({ ...one, state: "ready" as const, host: "a" }));
    const lost = { ...samplers[1], id: "r-s1", state: "queued" as const, host: "x" } as WorkerSnapshot;
    const held = [trainer, samplers[0], lost].filter((one) => one !== undefined);
    const leases = [
      { deviceId: "GPU-a-0", workerId: "r-t" },
      { deviceId: "GPU-a-1", workerId: "r-s0" },
    ];
    expect(where(planPlacement({ now: 0, hosts, workers: held, leases }))).toEqual(["c"]);
  });

  test("a reader starts where its run's files are, or where they are shared, and keeps nothing elsewhere from anybody", () => {
    const reader = (filesOn: string) => worker({ id: "w", runId: "r", role: "reader", filesOn });
    const hosts = [gpuHost("a", [1], mount), gpuHost("b", [1]), gpuHost("c", [1], mount)];
    expect(brief(plan(hosts, [reader("b")]))).toEqual([["place", "w", "GPU-b-0"]]);
    expect(brief(plan(hosts.slice(1), [reader("b"), worker({ id: "x", queuedAt: 1 })]))).toEqual([
      ["place", "w", "GPU-b-0"],
      ["place", "x", "GPU-c-0"],
    ]);
    const held = worker({ id: "h", state: "ready", host: "b" });
    const taken = { now: 0, hosts, leases: [{ deviceId: "GPU-b-0", workerId: "h" }] };
    const next = [worker({ id: "x", queuedAt: 1 }), worker({ id: "y", queuedAt: 2 })];
    expect(brief(planPlacement({ ...taken, workers: [held, reader("b"), ...next] }))).toEqual([
      ["queue", "w", "no-room"],
      ["place", "x", "GPU-a-0"],
      ["place", "y", "GPU-c-0"],
    ]);
    expect(brief(plan([gpuHost("c", [1], mount), gpuHost("a", [], mount)], [reader("a")]))).toEqual([
      ["place", "w", "GPU-c-0"],
    ]);
  });

  test.each([
    ["is not registered", [gpuHost("b", [1])], "not registered any more"],
    ["does not answer", [gpuHost("b", [1]), gpuHost("a", [1], { state: "lost" })], "does not answer"],
    ["drains", [gpuHost("b", [1]), gpuHost("a", [1], { state: "draining" })], "drains"],
    ["is too small", [gpuHost("b", [1]), gpuHost("a", [])], "not so many"],
  ])("a reader whose files are on a host that %s waits and says so", (_, hosts, words) => {
    const [said, ...more] = plan(hosts, [worker({ id: "w", runId: "r", role: "reader", filesOn: "a" })]);
    expect(said).toMatchObject({
      type: "queue",
      reason: { code: "files-away", message: expect.stringContaining(words) },
    });
    expect(more).toEqual([]);
  });

  test("a run and its reader don't wait for each other, and neither ends with the other", () => {
    const own = worker({ id: "o", runId: "r", devices: 2 });
    const reader = worker({ id: "w", runId: "r", role: "reader", filesOn: "a" });
    expect(brief(plan([gpuHost("a", [1])], [own, reader]))).toEqual([
      ["queue", "o", "too-large"],
      ["place", "w", "GPU-a-0"],
    ]);
    const failed = { ...reader, state: "failed" } as const;
    expect(brief(plan([gpuHost("a", [1, 1])], [own, failed]))).toEqual([["place", "o", "GPU-a-0,GPU-a-1"]]);
  });

  test("a run that waits is not overtaken by a smaller one, which may use what can't serve it", () => {
    const world = new FleetWorld(
      [gpuHost("a", [80, 80]), gpuHost("b", [24])],
      [worker({ id: "w0", memoryMb: 80 })],
      99,
    );
    world.settle();
    world.add([worker({ id: "w1", devices: 2, memoryMb: 80 })], 1);
    world.now += 1;
    world.add([worker({ id: "w2", memoryMb: 80 }), worker({ id: "w3" })], 1);
    expect(brief(world.settle())).toEqual([
      ["queue", "w1", "no-room"],
      ["queue", "w2", "behind"],
      ["place", "w3", "GPU-b-0"],
    ]);
  });

  test("a higher priority goes first, until the other has waited for what a level is worth", () => {
    const old = worker({ id: "old", queuedAt: 0 });
    const order = (queuedAt: number) =>
      brief(plan([gpuHost("a", [1])], [old, worker({ id: "new", priority: 1, queuedAt })])).map(([, id]) => id);
    expect(order(priorityWorthMs - 1)).toEqual(["new", "old"]);
    expect(order(priorityWorthMs + 1)).toEqual(["old", "new"]);
  });

  test("the workers of a lost host start again elsewhere, and what is left of the run stays", () => {
    const world = new FleetWorld([gpuHost("a", [1, 1], mount), gpuHost("b", [1, 1], mount)], split("r", 1), 99);
    world.setHost("b", "lost");
    world.settle();
    world.setHost("b", "ready");
    world.setHost("a", "lost");
    expect(brief(world.settle())).toEqual(
      [
        ["restart", "r-s0", "host-lost"],
        ["restart", "r-t", "host-lost"],
        ["queue", "r-s0", "back-off"],
        ["queue", "r-t", "back-off"],
        ["place", "r-s0", "GPU-b-0"],
        ["place", "r-t", "GPU-b-1"],
      ].filter(([type]) => type !== "queue"),
    );
  });

  test("two runs that each lost a part never wait for what the other holds", () => {
    const world = new FleetWorld(
      [gpuHost("a", [1, 1], mount), gpuHost("b", [1, 1], mount)],
      [...split("r1", 1), ...split("r2", 1)],
      3,
    );
    // Each has one worker on either host.
    for (const [device, id, host] of [
      ["GPU-a-0", "r1-t", "a"],
      ["GPU-b-0", "r1-s0", "b"],
      ["GPU-a-1", "r2-s0", "a"],
      ["GPU-b-1", "r2-t", "b"],
    ] as const) {
      world.leases.set(device, id);
      const placed = world.workers.find((one) => one.id === id);
      if (placed) Object.assign(placed, { state: "ready", host });
    }
    world.setHost("b", "lost");
    const said = brief(world.settle());
    expect(said).toContainEqual(["stop", "r2-s0", "yields"]);
    expect(said.some(([type, id]) => type === "stop" && String(id).startsWith("r1"))).toBe(false);
    for (let at = 0; at < 30 && !(world.isOver("r1") && world.isOver("r2")); at += 1) {
      world.tick();
      world.settle();
    }
    expect([world.isOver("r1"), world.isOver("r2")]).toEqual([true, true]);
  });

  test("a run whose trainer fits nowhere beside its own samplers starts again as a whole", () => {
    const world = new FleetWorld([gpuHost("a", [1, 1], mount), gpuHost("b", [1], mount)], split("r", 1, 2), 5);
    const sampler = world.workers.find((one) => one.id === "r-s0");
    if (sampler) Object.assign(sampler, { state: "ready", host: "a" });
    world.leases.set("GPU-a-0", "r-s0");
    expect(brief(world.settle())).toEqual([
      ["stop", "r-s0", "regroups"],
      ["place", "r-s0", "GPU-b-0"],
      ["place", "r-t", "GPU-a-0,GPU-a-1"],
    ]);
  });

  test("a container that ended starts again after its back-off, on the host where it saved its work; not for ever", () => {
    const world = new FleetWorld([gpuHost("a", [1]), gpuHost("b", [1])], [worker({ id: "w" })], 99);
    world.settle();
    for (const end of ["restart", "restart", "fail"]) {
      world.tick();
      world.endContainer("w");
      expect(brief(world.settle())[0]?.[0]).toBe(end);
      if (end === "fail") break;
      expect(world.workers[0]?.state).toBe("queued");
      world.now += tickMs;
      world.settle();
      expect(world.workers[0]).toMatchObject({ state: "starting", host: "a" });
    }
    expect(world.workers[0]).toMatchObject({ state: "failed", reason: { code: "too-many-failures" } });
    expect(world.leases.size).toBe(0);
  });

  test("a host that drains keeps what it has and gets nothing", () => {
    const world = new FleetWorld([gpuHost("a", [1, 1])], [worker({ id: "w1" })], 99);
    world.settle();
    world.setHost("a", "draining");
    world.add([worker({ id: "w2" })], 1);
    expect(brief(world.settle())).toEqual([["queue", "w2", "hosts-away"]]);
    expect(world.workers[0]?.state).toBe("starting");
  });

  test("a GPU on hosts that can give containers none is refused, with the hosts and what helps", () => {
    const plain = (name: string) => gpuHost(name, [], { gpuRuntime: false });
    const [action] = plan([plain("b"), plain("a")], [worker({ id: "w" })]);
    expect(action).toMatchObject({ type: "refuse", workerId: "w", reason: { code: "no-gpu-runtime" } });
    expect(action?.type === "refuse" && action.reason.message).toBe(
      "needs a GPU; Docker can give containers none on a, b",
    );
    expect(action?.type === "refuse" && action.reason.remedy).toContain("NVIDIA Container Toolkit");
    // One that was not asked yet may have some.
    const unseen = gpuHost("c", [], { gpuRuntime: null, state: "unseen" });
    expect(brief(plan([plain("a"), unseen], [worker({ id: "w" })]))).toEqual([["queue", "w", "hosts-away"]]);
  });

  test.each([
    ["no host", [], "no-hosts"],
    ["only a lost host that would do", [gpuHost("a", [1], { state: "lost" })], "hosts-away"],
    ["only a lost host that would not do either", [gpuHost("a", [], { state: "lost" })], "too-large"],
  ])("says what is missing: %s", (_, hosts, code) => {
    expect(brief(plan(hosts, [worker({ id: "w" })]))).toEqual([["queue", "w", code]]);
  });

  test("a device with a container on it that nobody stands for is not given away", () => {
    const host = gpuHost("a", [1]);
    const occupied = { ...host, devices: host.devices.map((device) => ({ ...device, occupied: true })) };
    expect(brief(plan([occupied], [worker({ id: "w" })]))).toEqual([["queue", "w", "no-room"]]);
  });

  test("a GPU that two hosts report is given once", () => {
    const twin = { ...gpuHost("a", [1]), name: "b" };
    const places = plan([gpuHost("a", [1]), twin], [worker({ id: "w1" }), worker({ id: "w2" })]);
    expect(places.filter((action) => action.type === "place")).toHaveLength(1);
  });

  test("when one worker of a run is refused, the others don't stay", () => {
    const workers = split("r", 1).map((one) =>
      one.role === "trainer" ? { ...one, state: "failed" as const } : { ...one, state: "ready" as const, host: "a" },
    );
    expect(brief(plan([gpuHost("a", [1])], workers))).toEqual([["stop", "r-s0", "unwanted"]]);
  });
});
