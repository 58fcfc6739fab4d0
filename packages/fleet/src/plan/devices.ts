/**
 * The fleet's devices while a plan is made: free, held or kept for who is first in line. A device that two hosts report counts once,
 * with the host whose name comes first.
 */
import type { DeviceSnapshot, FleetSnapshot, HostSnapshot } from "@rolldeck/contracts/fleet";
import { groupBy } from "@rolldeck/contracts/group-by";
import { fitAnywhere, fitWorkers, type Need, type Room, serves, shareOf } from "./fit-workers.ts";

interface Device {
  readonly host: HostSnapshot;
  readonly device: DeviceSnapshot;
  readonly holder: string | null;
}

export class Devices {
  /** Of hosts that take workers. */
  readonly #devices: readonly Device[];
  readonly #hosts: readonly HostSnapshot[];
  readonly #taken = new Set<string>();
  readonly #reserved = new Set<string>();

  constructor(snapshot: FleetSnapshot) {
    const holders = new Map(snapshot.leases.map((lease) => [lease.deviceId, lease.workerId]));
    this.#hosts = [...snapshot.hosts].sort((a, b) => (a.name < b.name ? -1 : 1));
    const seen = new Set<string>();
    this.#devices = this.#hosts.flatMap((host) =>
      host.devices.flatMap((device) => {
        if (seen.has(device.id)) return [];
        seen.add(device.id);
        return host.state === "ready" ? [{ host, device, holder: holders.get(device.id) ?? null }] : [];
      }),
    );
  }

  /** What may be taken: free, not kept for others; with `reserved` those too, and what the workers `of` hold. */
  rooms(more: { readonly reserved?: boolean; readonly of?: readonly string[] } = {}): Room[] {
    return roomsOf(
      this.#devices.filter(({ device, holder }) => {
        if (this.#taken.has(device.id) || device.occupied) return false;
        if (this.#reserved.has(device.id) && !more.reserved) return false;
        return holder === null || (more.of ?? []).includes(holder);
      }),
    );
  }

  /** The whole fleet, were it empty but for these workers. */
  roomsOfAll(butFor: readonly string[] = []): Room[] {
    return roomsOf(this.#devices.filter(({ holder }) => holder === null || !butFor.includes(holder)));
  }

  /** Whether they would fit an empty fleet with these hosts in it. One that was never asked might have anything. */
  wouldFit(needs: readonly Need[], away: readonly HostSnapshot[]): boolean {
    if (away.some((host) => host.state === "unseen")) return true;
    const theirs = away.map((host) => roomOf(host, host.devices));
    return fitWorkers(needs, [...this.roomsOfAll(), ...theirs]) !== null;
  }

  /** What is there would do, on hosts that don't share the files of a run. */
  wouldFitApart(needs: readonly Need[]): boolean {
    return fitAnywhere(needs, this.roomsOfAll()) !== null;
  }

  /** What the workers on these hosts share; null where there are none. */
  shareOf(hosts: readonly (string | null)[]): string | null {
    const host = this.#hosts.find(({ name }) => hosts.includes(name));
    return host ? shareOf(roomOf(host, [])) : null;
  }

  /** What the files on a host are shared under; a host that is not registered has nothing. */
  shareNamed(name: string): string {
    return this.shareOf([name]) ?? shareOf({ host: name });
  }

  take(ids: readonly string[]): void {
    for (const id of ids) this.#taken.add(id);
  }

  /**
   * Keeps what could serve one of these, on hosts that have enough of it, from all who ask later in this plan.
   * @param within the share that they have to be in; null: any
   */
  reserve(needs: readonly Need[], within: string | null): void {
    const whole = this.roomsOfAll().filter((room) => within === null || shareOf(room) === within);
    for (const need of needs) {
      for (const { devices } of whole) {
        const fitting = devices.filter((device) => serves(device, need));
        if (fitting.length >= need.devices) for (const device of fitting) this.#reserved.add(device.id);
      }
    }
  }
}

function roomsOf(devices: readonly Device[]): Room[] {
  const rooms = groupBy(devices, ({ host }) => host);
  return [...rooms].map(([host, those]) =>
    roomOf(
      host,
      those.map(({ device }) => device),
    ),
  );
}

const roomOf = ({ name, share }: HostSnapshot, devices: readonly DeviceSnapshot[]): Room => ({
  ...{ host: name, devices },
  ...(share === undefined ? {} : { share }),
});
