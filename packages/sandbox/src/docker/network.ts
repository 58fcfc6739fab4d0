/**
 * What a sandbox may reach, as container options. Nothing at all, what stands beside it, or the machine's own bridge where the spec
 * says `public`.
 */
import type { SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { needsBeside, openBeside, type SandboxNetwork } from "./beside.ts";
import type { BesideScene } from "./beside-container.ts";

export interface NetworkPart {
  /** Then no network is made for it but its own loopback, which starts faster than the network named `none`. */
  readonly disabled: boolean;
  readonly mode?: string;
  /** What stands beside it; absent: nothing does. */
  readonly beside?: SandboxNetwork;
}

/** Opens what has to stand beside it first. @throws BoundaryError("sandbox"), the signal's reason; nothing is left then */
export async function networkPart(scene: BesideScene, spec: SandboxSpec, signal: AbortSignal): Promise<NetworkPart> {
  if (needsBeside(spec)) {
    const beside = await openBeside(scene, spec, signal);
    return { disabled: false, mode: beside.mode, beside };
  }
  return spec.network.mode === "public" ? { disabled: false, mode: "bridge" } : { disabled: true };
}
