/** The network of a fleet's workers on a host: a bridge of its own, on which workers don't reach each other, nor sandboxes them. */
import type Docker from "dockerode";
import { labels } from "./container-body.ts";
import { type AskedHost, asked, statusOf } from "./daemon-words.ts";

export const networkName = (fleet: string): string => `rolldeck-fleet-${fleet}`;

/** Makes it where it is not. @returns its name @throws LaunchFailure */
export async function ensureNetwork(
  scene: { readonly docker: Docker; readonly host: AskedHost; readonly fleet: string },
  signal: AbortSignal,
): Promise<string> {
  const { docker, host, fleet } = scene;
  const name = networkName(fleet);
  const found = docker
    .getNetwork(name)
    .inspect()
    .then(
      () => true,
      (error: unknown) => {
        if (statusOf(error) === 404) return false;
        throw error;
      },
    );
  if (await asked(host, "looking for the workers' network", found, signal)) return name;
  const making = docker
    .createNetwork({
      ...{ Name: name, Driver: "bridge", CheckDuplicate: true },
      Options: { "com.docker.network.bridge.enable_icc": "false" },
      Labels: { [labels.fleet]: fleet, [labels.role]: "network" },
    })
    .catch((error: unknown) => {
      // Another launch was faster.
      if (statusOf(error) !== 409) throw error;
    });
  await asked(host, "making the workers' network", making, signal);
  return name;
}
