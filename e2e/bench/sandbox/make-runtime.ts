/** The runtime of a process that the benchmark starts and kills. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { dockerRuntime, processRuntime } from "./bench-sandboxes.ts";

export function makeRuntime(deployment: string): SandboxRuntime {
  const {
    ROLLDECK_BENCH_RUNTIME: name,
    ROLLDECK_BENCH_SOCKET: socket = "",
    ROLLDECK_BENCH_STATE: state = "",
  } = process.env;
  return name === "process" ? processRuntime(deployment, state) : dockerRuntime(deployment, socket);
}
