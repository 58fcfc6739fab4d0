/** The runtime of namespaces with its state in the tests' folder, also for processes that a test starts and kills. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { ProcessRuntime } from "../src/process/process-runtime.ts";
import { parseSandboxSettings } from "../src/settings.ts";

export const stateVariable = "ROLLDECK_TEST_PROCESS_STATE";

export function makeRuntime(deployment: string): SandboxRuntime {
  const stateFolder = process.env[stateVariable];
  if (stateFolder === undefined) throw new Error(`${stateVariable} is not set`);
  return new ProcessRuntime({
    settings: parseSandboxSettings({}, "/"),
    ...{ deployment, stateFolder },
    onTrouble: (message, error) => process.stderr.write(`${message}: ${String(error)}\n`),
  });
}
