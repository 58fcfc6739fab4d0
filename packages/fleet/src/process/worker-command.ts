/** How a worker's keeper is started on this machine. Pure. Invariant: the run's key is in the environment and nowhere else. */
import type { LaunchSpec } from "@rolldeck/contracts/ports/fleet";
import { roleFlags } from "../role-flags.ts";

interface CommandScene {
  readonly python: string;
  /** In place of the worker's module. */
  readonly worker: string | undefined;
  readonly modelRoots: string;
  /** For its keeper. */
  readonly folder: string;
  /** For what it saves. */
  readonly saved: string;
  /** Of other runs that it reads. */
  readonly reads: readonly string[];
}

export function keeperCommand(
  spec: LaunchSpec,
  scene: CommandScene,
): { readonly command: string; readonly args: readonly string[] } {
  const flags = [
    // The kernel chooses the port; its keeper writes down which.
    ...["--host", "127.0.0.1", "--port", "0", "--data-dir", scene.saved],
    ...["--model-roots", spec.modelFolder ?? scene.modelRoots, "--device", spec.device === "gpu" ? "cuda" : "cpu"],
    ...scene.reads.flatMap((folder) => ["--also-read", folder]),
    ...roleFlags(spec.role),
  ];
  const bound = spec.memoryMb === null ? [] : ["--memory-mb", String(spec.memoryMb)];
  const worker = scene.worker === undefined ? [] : ["--worker", scene.worker];
  const keeper = ["-m", "rolldeck_gpu_worker.keeper", "--folder", scene.folder, ...bound, ...worker];
  return { command: scene.python, args: [...keeper, "--", ...flags] };
}

/** What programs, Python and CUDA need of ours. Our own secrets and addresses are not among it. */
const passedOn =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|XDG_CACHE_HOME|CUDA_HOME|CUDA_PATH|NVIDIA_\w+|NCCL_\w+|OMP_\w+)$/;

export function workerEnvironment(
  own: NodeJS.ProcessEnv,
  { key, device, devices }: LaunchSpec,
  source: string,
): Record<string, string> {
  const kept = Object.entries(own).filter((entry): entry is [string, string] => passedOn.test(entry[0]) && !!entry[1]);
  return {
    ...Object.fromEntries(kept),
    ...{ ROLLDECK_GPU_WORKER_KEY: key, PYTHONPATH: source, PYTHONUNBUFFERED: "1" },
    ...{ HF_HUB_OFFLINE: "1", OMP_WAIT_POLICY: "PASSIVE" },
    // CUDA knows GPUs by their UUIDs. Those it holds leases of, and no other.
    CUDA_VISIBLE_DEVICES: device === "gpu" ? devices.join(",") : "",
  };
}
