/** Looks at the daemons, past everything of ours, for devices with more than one container of the fleet running on them. */
import type { TestHost } from "@rolldeck/fleet/testing/docker-hosts";

const everyMs = 200;

export const fleetContainers = async (host: TestHost, fleet: string, all: boolean) =>
  host.docker.listContainers({ all, filters: { label: [`rolldeck.fleet=${fleet}`] } });

/** @returns how many devices were seen with two, each counted once; ask after the signal was aborted */
export function watchDevices(hosts: readonly TestHost[], fleet: string, signal: AbortSignal): () => number {
  const doubled = new Set<string>();
  const look = async (): Promise<void> => {
    while (!signal.aborted) {
      const running = await Promise.all(hosts.map((host) => fleetContainers(host, fleet, false).catch(() => [])));
      const devices = running.flat().flatMap((one) => (one.Labels["rolldeck.fleet.devices"] ?? "").split(","));
      for (const [at, device] of devices.entries()) if (devices.indexOf(device) !== at) doubled.add(device);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  void look();
  return () => doubled.size;
}
