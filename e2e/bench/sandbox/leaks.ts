/** What is left of the sandboxes of processes that were killed: some while they held them, some while they opened them. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { countContainers } from "@rolldeck/sandbox/testing/raw-docker";
import { benchSpec, forever } from "./bench-sandboxes.ts";

const leaseMs = 10_000;
/** "Nothing is left" is asked so long after the longest lease. */
const graceMs = 30_000;
const each = 8;
const holder = fileURLToPath(import.meta.resolve("@rolldeck/sandbox/testing/conformance/hold-sandboxes"));
const module = fileURLToPath(new URL("./make-runtime.ts", import.meta.url));

export interface LeakScene {
  readonly deployment: string;
  readonly socket: string;
  readonly stateFolder: string;
  /** Null where there is no process runtime. */
  readonly processes: SandboxRuntime | null;
}

export async function countLeaks(scene: LeakScene, progress: (line: string) => void): Promise<number> {
  const names = scene.processes === null ? ["docker"] : ["docker", "process"];
  const holding = names.map((name) => hold(scene, name));
  const opening = hold(scene, "docker");
  await Promise.all(holding.map(isOpen));
  for (const child of [...holding, opening]) child.kill("SIGKILL");
  progress(
    `killed ${holding.length + 1} processes with ${each} sandboxes each; waiting ${(leaseMs + graceMs) / 1000} s`,
  );
  await new Promise((resolve) => setTimeout(resolve, leaseMs + graceMs));
  const containers = await countContainers(scene.socket, scene.deployment);
  const processes = (await scene.processes?.list(forever)) ?? [];
  return containers + processes.filter(({ state }) => state === "running").length;
}

function hold(scene: LeakScene, name: string): ChildProcess {
  const specs = Array.from({ length: each }, () => benchSpec(name === "docker", leaseMs));
  return spawn(process.execPath, ["--import", "tsx", holder, module, scene.deployment, JSON.stringify(specs)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      ROLLDECK_BENCH_RUNTIME: name,
      ROLLDECK_BENCH_SOCKET: scene.socket,
      ROLLDECK_BENCH_STATE: scene.stateFolder,
    },
  });
}

function isOpen(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the holder ended with ${code}`)));
  });
}
