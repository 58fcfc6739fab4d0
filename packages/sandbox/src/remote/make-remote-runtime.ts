/** The `remote` runtime from a process' settings. */
import { readFile } from "node:fs/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxSettings } from "../settings.ts";
import { RemoteRuntime } from "./remote-runtime.ts";

export interface RemoteScene {
  readonly settings: Pick<SandboxSettings, "remote">;
  readonly deployment: string;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** @throws BoundaryError("sandbox", "no_runtime") when no server is configured */
export function makeRemoteRuntime({ settings, deployment, onTrouble }: RemoteScene): RemoteRuntime {
  const { remote } = settings;
  if (remote === null) throw new BoundaryError("sandbox", "no_runtime", "ROLLDECK_SANDBOX_SERVER is not set");
  const { url, token, caFile } = remote;
  return new RemoteRuntime({
    address: async () => ({ url, token, ca: caFile === null ? null : await readFile(caFile, "utf8") }),
    deployment,
    onTrouble,
  });
}
