/** Why a worker waits, stops or is refused, in words that stay the same while the reason does. */
import type { FleetReason, HostSnapshot, WorkerSnapshot } from "@rolldeck/contracts/fleet";

type Needed = Pick<WorkerSnapshot, "device" | "devices" | "memoryMb">;

/** @example "2 GPUs of at least 80000 MB on one host" */
export function needText({ device, devices, memoryMb }: Needed): string {
  const noun = device === "gpu" ? "GPU" : "place without a GPU";
  const many = devices === 1 ? `1 ${noun}` : `${devices} ${noun.replace(/^(GPU|place)/, "$1s")}`;
  const size = memoryMb > 0 ? ` of at least ${memoryMb} MB` : "";
  return `${many}${size}${devices > 1 ? " on one host" : ""}`;
}

const waiting = (code: FleetReason["code"], message: string): FleetReason => ({ code, message, remedy: null });

export const noRoom = (worker: Needed): FleetReason =>
  waiting("no-room", `waits for ${needText(worker)}; all that would do are taken`);
export const behind = (worker: Needed): FleetReason =>
  waiting("behind", `waits for ${needText(worker)}; runs that came first wait for the same devices`);
export const backOff = waiting("back-off", "waits a moment before it is started again");
export const releasing = waiting("releasing", "waits until its other workers have given their devices back");
export const unwanted = waiting("unwanted", "its run needs it no more");
export const unused = waiting("unwanted", "nobody reads its run's files any more");
export const brokenRun = waiting("unwanted", "another worker of its run ended for good");
export const yields = waiting(
  "yields",
  "its run can't work with what it holds, and a run that came first can: it starts again with all of its workers",
);
export const regroups = waiting(
  "regroups",
  "the workers that its run lost fit nowhere beside this one: all of them start again together",
);

export const hostLost = ({ host, filesOn }: Pick<WorkerSnapshot, "host" | "filesOn">): FleetReason =>
  waiting(
    "host-lost",
    `host ${host} does not answer; it is started again ${filesOn == null ? "on another one" : "where the files that it reads are"}`,
  );
export const containerEnded = (worker: Pick<WorkerSnapshot, "reason">): FleetReason =>
  worker.reason ?? waiting("container-ended", "its container ended");
export const tooManyFailures = (worker: Pick<WorkerSnapshot, "reason" | "failures">): FleetReason => ({
  code: "too-many-failures",
  message: `it ended ${worker.failures} times in a row${worker.reason ? `, last: ${worker.reason.message}` : ""}`.slice(
    0,
    600,
  ),
  remedy: "read its log (rolldeck fleet logs), correct the cause and launch the run again",
});

export const noHosts = (worker: Needed): FleetReason => ({
  code: "no-hosts",
  message: `needs ${needText(worker)}; the fleet has no host`,
  remedy: "register one: rolldeck fleet add-host",
});
export const hostsAway = (worker: Needed, hosts: readonly HostSnapshot[]): FleetReason => ({
  code: "hosts-away",
  message: `needs ${needText(worker)}; only hosts that are away or drain have that: ${names(hosts)}`,
  remedy: `bring ${names(hosts)} back, or register another host`,
});
export const tooLarge = (worker: Needed): FleetReason => ({
  code: "too-large",
  message: `needs ${needText(worker)} beside the other workers of its run; the fleet is too small for that`,
  remedy: "register a larger host, or ask for fewer or smaller devices",
});
export const apart = (worker: Needed): FleetReason => ({
  code: "apart",
  message: `needs ${needText(worker)} beside the other workers of its run; hosts that share its files have not so many together`,
  remedy:
    "register the hosts with a checkpoint folder on a network mount of the same name (--checkpoints, --share), or ask for fewer devices",
});
/** @param host where the files are; undefined: it is not registered any more */
export const filesAway = (worker: Needed, filesOn: string, host: HostSnapshot | undefined): FleetReason => ({
  code: "files-away",
  message: `needs ${needText(worker)} on host ${filesOn}, where the files are that it reads; ${hostTrouble(host)}`,
  remedy:
    host === undefined
      ? `register the machine again under the name ${filesOn}`
      : `bring ${filesOn} back with what it had`,
});
function hostTrouble(host: HostSnapshot | undefined): string {
  if (host === undefined) return "that host is not registered any more";
  if (host.state === "ready") return "that host has not so many or so large ones";
  return host.state === "draining" ? "that host drains" : "that host does not answer";
}
export const noGpuRuntime = (hosts: readonly HostSnapshot[]): FleetReason => ({
  code: "no-gpu-runtime",
  message: `needs a GPU; Docker can give containers none on ${names(hosts)}`,
  remedy: gpuRuntimeRemedy(names(hosts)),
});

/** What to do where containers can't be given GPUs. */
export const gpuRuntimeRemedy = (hosts: string): string =>
  `install the NVIDIA Container Toolkit on ${hosts} (nvidia-ctk runtime configure --runtime=docker, or nvidia-ctk cdi generate), restart Docker there and launch again; or ask for device cpu`;

/** At most six, by name. */
function names(hosts: readonly HostSnapshot[]): string {
  const sorted = hosts.map((host) => host.name).sort();
  const more = sorted.length - 6;
  return more > 0 ? `${sorted.slice(0, 6).join(", ")} and ${more} more` : sorted.join(", ");
}
