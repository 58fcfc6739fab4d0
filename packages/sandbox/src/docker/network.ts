/**
 * What a sandbox may reach, as container options, and what has to be made and removed with it. Here: nothing at all, or the
 * machine's own bridge where the spec says `public`. Anything else is refused, never weakened.
 */
import type { SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { refused } from "./daemon-trouble.ts";

export interface NetworkPart {
  /** Then no network is made for it but its own loopback, which starts faster than the network named `none`. */
  readonly disabled: boolean;
  readonly mode?: string;
}

/** @throws BoundaryError("sandbox", "refused") */
export function networkPart(spec: SandboxSpec): NetworkPart {
  if (spec.services.length > 0) throw refused("Docker sandboxes have no services beside them yet");
  switch (spec.network.mode) {
    case "none":
      return { disabled: true };
    case "public":
      return { disabled: false, mode: "bridge" };
    case "allow-list":
      throw refused("Docker sandboxes have no network with a list of hosts yet");
  }
}

/** Removes what was made beside the sandbox. Idempotent. */
export async function closeNetwork(_docker: Docker, _id: string): Promise<void> {}
