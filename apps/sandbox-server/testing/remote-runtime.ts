/** The remote runtime over the sandbox server of the tests, also for processes that a test starts and kills. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";

export const urlVariable = "ROLLDECK_TEST_SANDBOX_SERVER";
export const tokenVariable = "ROLLDECK_TEST_SANDBOX_TOKEN";

export function makeRuntime(deployment: string): SandboxRuntime {
  const { [urlVariable]: url, [tokenVariable]: token } = process.env;
  if (url === undefined || token === undefined) throw new Error("there is no sandbox server");
  return new RemoteRuntime({
    address: async () => ({ url, token, ca: null }),
    deployment,
    onTrouble: (message, error) => process.stderr.write(`${message}: ${String(error)}\n`),
  });
}
