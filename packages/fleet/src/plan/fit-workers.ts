/**
 * Finds places for workers that start together. Exact: where there is a way to place all, one is found; each worker's devices are
 * those of one host, and all hosts of a group share its files. The search is bounded; a group that it gives up on counts as one that
 * does not fit now.
 */
import type { DeviceSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";
import { groupBy } from "@rolldeck/contracts/group-by";

/** Devices of one host that may be taken. */
export interface Room {
  readonly host: string;
  /** As the host's. */
  readonly share?: string;
  readonly devices: readonly DeviceSnapshot[];
}
export interface Placement {
  readonly workerId: string;
  readonly host: string;
  readonly devices: readonly string[];
}
export type Need = Pick<WorkerSnapshot, "id" | "device" | "devices" | "memoryMb" | "host">;

const maxTries = 20_000;

/** Whether a device is of the kind and size that a worker needs. */
export const serves = (device: DeviceSnapshot, need: Pick<Need, "device" | "memoryMb">): boolean =>
  device.kind === need.device && device.memoryMb >= need.memoryMb;

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What a host's files are shared under. A host's own name can't be mistaken for a share's. */
export const shareOf = ({ host, share }: { readonly host: string; readonly share?: string }): string =>
  share === undefined ? `host ${host}` : `share ${share}`;

/**
 * @param within the share that workers of the same group hold already; null: any
 * @returns a place for each, in the order of the workers' ids; null where they don't fit together
 */
export function fitWorkers(
  needs: readonly Need[],
  rooms: readonly Room[],
  within: string | null = null,
): Placement[] | null {
  const allowed = within === null ? rooms : rooms.filter((room) => shareOf(room) === within);
  // One alone shares with nobody.
  if (needs.length < 2) return fitAnywhere(needs, allowed);
  const found = [...groupBy(allowed, shareOf).values()].flatMap((together) => {
    const placed = fitAnywhere(needs, together);
    if (placed === null) return [];
    const back = placed.filter(({ workerId, host }) =>
      needs.some((need) => need.id === workerId && need.host === host),
    );
    const left = together.reduce((sum, { devices }) => sum + devices.length, 0);
    return [{ placed, back: back.length, left, name: together.map(({ host }) => host).sort()[0] ?? "" }];
  });
  // Where most of them were before, then where least is left over.
  found.sort((a, b) => b.back - a.back || a.left - b.left || byText(a.name, b.name));
  return found[0]?.placed ?? null;
}

/** The same, whatever the hosts share. */
export function fitAnywhere(needs: readonly Need[], rooms: readonly Room[]): Placement[] | null {
  // The choosiest first: what serves them serves all after them, so which devices they take of a host does not matter.
  const order = [...needs].sort((a, b) => b.memoryMb - a.memoryMb || b.devices - a.devices || byText(a.id, b.id));
  const search = new Search(order);
  const found = search.from(
    0,
    [...rooms].sort((a, b) => byText(a.host, b.host)),
  );
  return found && [...found].sort((a, b) => byText(a.workerId, b.workerId));
}

class Search {
  readonly #needs: readonly Need[];
  readonly #hopeless = new Set<string>();
  #tries = 0;

  constructor(needs: readonly Need[]) {
    this.#needs = needs;
  }

  from(at: number, rooms: readonly Room[]): Placement[] | null {
    const need = this.#needs[at];
    if (need === undefined) return [];
    // Which host is which does not decide whether the rest fits.
    const state = `${at} ${rooms.map(shape).sort().join("|")}`;
    if (this.#hopeless.has(state) || this.#tries >= maxTries) return null;
    this.#tries += 1;
    for (const { room, taken } of candidates(need, rooms, this.#hostsSoFar(at))) {
      const left = { ...room, devices: room.devices.filter((device) => !taken.includes(device.id)) };
      const rest = this.from(
        at + 1,
        rooms.map((other) => (other === room ? left : other)),
      );
      if (rest) return [{ workerId: need.id, host: room.host, devices: taken }, ...rest];
    }
    this.#hopeless.add(state);
    return null;
  }

  /** Hosts where others of the group were before: they do best together. */
  #hostsSoFar(at: number): ReadonlySet<string | null> {
    return new Set(this.#needs.filter((_, index) => index !== at).map((need) => need.host));
  }
}

const shape = (room: Room): string =>
  room.devices
    .map((device) => `${device.kind}${device.memoryMb}`)
    .sort()
    .join();

/** Where it was before first, then near the others, then the tightest fit. Rooms alike in all that counts are tried once. */
function candidates(need: Need, rooms: readonly Room[], near: ReadonlySet<string | null>) {
  const fitting = rooms.flatMap((room) => {
    const adequate = room.devices.filter((device) => serves(device, need));
    if (adequate.length < need.devices) return [];
    const smallestFirst = [...adequate].sort((a, b) => a.memoryMb - b.memoryMb || byText(a.id, b.id));
    const taken = smallestFirst.slice(0, need.devices).map((device) => device.id);
    const liking = room.host === need.host ? 0 : near.has(room.host) ? 1 : 2;
    return [{ room, taken, liking, left: adequate.length - need.devices }];
  });
  fitting.sort((a, b) => a.liking - b.liking || a.left - b.left || byText(a.room.host, b.room.host));
  const shapes = new Set<string>();
  return fitting.filter(({ room }) => !shapes.has(shape(room)) && shapes.add(shape(room)));
}
