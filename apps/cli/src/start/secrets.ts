/** Secrets of one installation, each a 0600 file in the data folder; made once. Never printed, never in arguments. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The key between the control plane and the GPU worker; official clients of the protocol accept only the `tml-` prefix. */
export function gpuWorkerKey(dataFolder: string): string {
  const folder = path.join(dataFolder, "secrets");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, "gpu-worker-key");
  if (!existsSync(file)) writeFileSync(file, `tml-${randomBytes(24).toString("base64url")}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return readFileSync(file, "utf8").trim();
}
