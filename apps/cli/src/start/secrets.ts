/** Secrets of one installation, each a 0600 file in the data folder; made once. Never printed, never in arguments. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The key between the control plane and the GPU worker; official clients of the protocol accept only the `tml-` prefix. */
export const gpuWorkerKey = (dataFolder: string): string =>
  secretFile(dataFolder, "gpu-worker-key", () => `tml-${randomBytes(24).toString("base64url")}`);

/** As a Node worker asks for too. */
const shortestFleetSecret = 32;

/**
 * What the keys of the fleet's workers are made of, one key for each run.
 * @param given ROLLDECK_FLEET_SECRET, which wins: workers on other machines have no data folder in common with the supervisor
 * @throws Error that names the variable, never its value
 */
export function fleetSecret(dataFolder: string, given: string | undefined): string {
  if (!given) return secretFile(dataFolder, "fleet-secret", () => randomBytes(32).toString("base64url"));
  if (given.length >= shortestFleetSecret) return given;
  throw new Error(
    `ROLLDECK_FLEET_SECRET: must be at least ${shortestFleetSecret} characters, for keys are made of it; without it one is made`,
  );
}

function secretFile(dataFolder: string, name: string, make: () => string): string {
  const folder = path.join(dataFolder, "secrets");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, name);
  if (!existsSync(file)) writeFileSync(file, `${make()}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return readFileSync(file, "utf8").trim();
}
