/**
 * A GPU worker as a job of a Ray cluster. Pure. Invariants: the run's key is in the job's environment and in no command; whatever is put
 * into a command is quoted; a worker's address is loopback or private, and loopback only where the cluster is asked at loopback: else
 * it would be this machine's own.
 */
import { hostOfUrl, isLoopback, isPrivateAddress, type RayEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { HostFacts, LaunchSpec, SeenWorker } from "@rolldeck/contracts/ports/fleet";
import { z } from "zod";
import { LaunchFailure } from "../launch-failure.ts";
import { roleFlags } from "../role-flags.ts";
import { endedRayJobStates, type RayJobStatus, type RayNode } from "./ray-answers.ts";
import type { RayJobSpec } from "./ray-jobs.ts";

/** What a job says of itself; Ray lists it with the job. */
const marks = {
  fleet: "rolldeck_fleet",
  worker: "rolldeck_worker",
  claim: "rolldeck_claim",
  run: "rolldeck_run",
  devices: "rolldeck_devices",
  port: "rolldeck_port",
} as const;
/** With which a keeper ends for a worker that held too much memory. */
const outOfMemoryExit = 84;
/** A worker saves its models; Ray alone would give it 3 s. */
const stopWaitS = 20;
const mega = 1024 * 1024;

/** One name for a placement: whoever submits it again finds it. @throws LaunchFailure for ids that can't be one */
export function submissionId(fleet: string, { workerId, claim }: Pick<LaunchSpec, "workerId" | "claim">): string {
  const id = `${prefixOf(fleet)}${workerId}-${claim}`;
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,119}$/.test(id)) return id;
  throw new LaunchFailure({
    code: "launch-failed",
    message: `ids of this worker are none that a Ray job can have: ${id.slice(0, 160)}`,
    remedy: null,
  });
}

interface JobScene {
  readonly fleet: string;
  readonly host: string;
  readonly endpoint: RayEndpoint;
  /** At which it is to listen, whatever node it comes to. */
  readonly port: number;
}

/** @throws LaunchFailure where what it saves, or its models, have no place */
export function workerJob(spec: LaunchSpec, { fleet, host, endpoint, port }: JobScene): RayJobSpec {
  const { checkpointFolder, modelFolder, memoryMb, device, devices } = spec;
  if (checkpointFolder === null || modelFolder === null)
    throw new LaunchFailure({
      code: "launch-failed",
      message: `workers on ${host} need a folder with models and one for checkpoints, which all nodes share`,
      remedy: "register the cluster with --models and --checkpoints",
    });
  const keeper = ['--towards "$RAY_ADDRESS"', ...(memoryMb === null ? [] : [`--memory-mb ${memoryMb}`])];
  const flags = [
    ...["--port", String(port), "--data-dir", `${checkpointFolder}/${spec.runId}`, "--model-roots", modelFolder],
    ...["--device", device === "gpu" ? "cuda" : "cpu", ...roleFlags(spec.role)],
    ...spec.reads.flatMap((runId) => ["--also-read", `${checkpointFolder}/${runId}`]),
  ];
  return {
    submissionId: submissionId(fleet, spec),
    entrypoint: [endpoint.entrypoint, ...keeper, "--", ...flags.map(quoted)].join(" "),
    entrypointResources: device === "gpu" ? { gpus: devices.length } : { cpus: devices.length },
    metadata: {
      ...{ [marks.fleet]: fleet, [marks.worker]: spec.workerId, [marks.claim]: String(spec.claim) },
      ...{ [marks.run]: spec.runId, [marks.devices]: devices.join(","), [marks.port]: String(port) },
    },
    runtimeEnv: {
      env_vars: {
        ...{ ROLLDECK_GPU_WORKER_KEY: spec.key, HF_HUB_OFFLINE: "1", PYTHONUNBUFFERED: "1" },
        RAY_JOB_STOP_WAIT_TIME_S: String(stopWaitS),
      },
    },
  };
}

/** For a POSIX shell. */
const quoted = (word: string): string =>
  /^[A-Za-z0-9_./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

/** Null for a job that is no worker of this fleet. */
export function seenWorker(job: RayJobStatus, fleet: string, endpoint: RayEndpoint): SeenWorker | null {
  const { metadata, submissionId: containerId } = job;
  const workerId = metadata[marks.worker];
  const claim = Number(metadata[marks.claim]);
  if (containerId === null || metadata[marks.fleet] !== fleet) return null;
  if (workerId === undefined || !Number.isSafeInteger(claim)) return null;
  const outOfMemory = job.exitCode === outOfMemoryExit;
  return {
    ...{ containerId, workerId, claim },
    devices: (metadata[marks.devices] ?? "").split(",").filter((id) => id !== ""),
    state: endedRayJobStates.includes(job.state) ? "ended" : job.state === "pending" ? "created" : "running",
    url: job.state === "running" ? workerUrl(job, endpoint) : null,
    exitCode: outOfMemory ? 137 : job.exitCode,
    outOfMemory,
  };
}

const prefixOf = (fleet: string): string => `rolldeck-${fleet}-`;

/** A job whose entry Ray wrote anew after it was removed has lost its marks, and has its name. */
export function isOfFleet(job: RayJobStatus, fleet: string): boolean {
  const isUnmarked = Object.keys(job.metadata).length === 0 && endedRayJobStates.includes(job.state);
  return job.metadata[marks.fleet] === fleet || (isUnmarked && job.submissionId?.startsWith(prefixOf(fleet)) === true);
}

/** Where it is to listen: the node that Ray says it runs on, and the port that it was given. Null for another address than may be. */
export function workerUrl({ node, metadata }: RayJobStatus, endpoint: RayEndpoint): string | null {
  const port = Number(metadata[marks.port]);
  if (node === null || !Number.isInteger(port) || port < 1_024 || port > 65_535) return null;
  const url = `http://${node}:${port}`;
  return mayLead(url, endpoint) ? url : null;
}

function mayLead(url: string, endpoint: RayEndpoint): boolean {
  const address = hostOfUrl(url);
  if (!isPrivateAddress(address)) return false;
  return !isLoopback(address) || isLoopback(hostOfUrl(endpoint.url));
}

const Listening = z.object({ url: z.string().max(200), boot_id: z.string().min(1).max(200) });

/**
 * Where it says that it listens, once it does: the line of JSON that a worker prints, with its time before it. Ray keeps the log of a job
 * that was removed, and goes on with it when its name is used again: what was said of another port was said by that one.
 */
export function saidUrl(log: string, { metadata }: Pick<RayJobStatus, "metadata">): string | null {
  for (const [, text = ""] of log.matchAll(/^\S{1,40}Z (\{"url": ?"http:.{1,400}\})$/gm)) {
    const said = listeningOf(text);
    if (said !== null && URL.canParse(said) && new URL(said).port === metadata[marks.port]) return said;
  }
  return null;
}

function listeningOf(text: string): string | null {
  try {
    const said = Listening.safeParse(JSON.parse(text));
    return said.success ? said.data.url : null;
  } catch {
    // Some other line that looks like it.
    return null;
  }
}

/** Its nodes together. A GPU's id says which one of the host it is: Ray gives jobs GPUs by number. */
export function factsOf(host: string, version: string, nodes: readonly RayNode[]): HostFacts {
  const alive = nodes.filter(({ lives }) => lives);
  const sum = (resource: string): number =>
    alive.reduce((total, { resources }) => total + (resources[resource] ?? 0), 0);
  const gpus = alive
    .flatMap((node) => Array.from({ length: gpusOf(node) }, () => modelOf(node)))
    .map((model, index) => ({ uuid: `${host}-gpu-${index}`, index, model, memoryMb: 0 }));
  return {
    daemon: `Ray ${version}`,
    system: alive.length === 1 ? "1 node" : `${alive.length} nodes`,
    cpus: Math.floor(sum("CPU")),
    memoryMb: Math.floor(sum("memory") / mega),
    gpuRuntime: gpus.length > 0 ? "nvidia" : null,
    ...{ runtimes: [], cdiDevices: [], gpus, probeTrouble: null },
  };
}

export const gpusOf = ({ resources }: RayNode): number => Math.floor(resources.GPU ?? 0);

/** Of one kind on a node. */
function modelOf({ resources }: RayNode): string {
  const type = Object.keys(resources).find((name) => name.startsWith("accelerator_type:"));
  return type?.slice("accelerator_type:".length) || "GPU";
}
