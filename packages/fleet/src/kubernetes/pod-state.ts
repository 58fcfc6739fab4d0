/** What a pod says of itself, in the fleet's words. Pure. */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import type { SeenWorker } from "@rolldeck/contracts/ports/fleet";
import type { Pod } from "./answers.ts";
import { mainContainer } from "./worker-pod.ts";

type Told = Pick<SeenWorker, "state" | "url" | "exitCode" | "outOfMemory">;

const containerOf = ({ status }: Pod) => status?.containerStatuses?.find(({ name }) => name === mainContainer)?.state;

/** One that is being deleted still runs, or may: its devices are not free. */
export function podState(pod: Pod, port: number): Told {
  const { phase, reason, podIP } = pod.status ?? {};
  const ended = containerOf(pod)?.terminated ?? null;
  if (ended !== null || phase === "Succeeded" || phase === "Failed")
    return {
      ...{ state: "ended", url: null, exitCode: ended?.exitCode ?? null },
      outOfMemory: ended?.reason === "OOMKilled" || reason === "Evicted",
    };
  const runs = phase === "Running" && !pod.metadata.deletionTimestamp;
  const url = runs && podIP ? `http://${podIP.includes(":") ? `[${podIP}]` : podIP}:${port}` : null;
  return { state: phase === "Running" ? "running" : "created", url, exitCode: null, outOfMemory: false };
}

const pullTroubles = new Set(["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"]);
/** `CreateContainerConfigError` is not among them: it is what a pod says until its key is there. */
const startTroubles = new Set(["CreateContainerError", "RunContainerError"]);

/** Why it will not come up; null while it may. @param patience is over: what may still change by itself counts as well */
export function startTrouble(
  pod: Pod,
  patience: boolean,
): { readonly reason: FleetReason; readonly retryable: boolean } | null {
  const { reason = null, message = null } = containerOf(pod)?.waiting ?? {};
  const words = `${reason ?? ""} ${message ?? ""}`.trim().slice(0, 400);
  const { name } = pod.metadata;
  if (pullTroubles.has(reason ?? ""))
    return {
      reason: {
        code: "no-image",
        message: `the nodes can't have the image of ${name} (${words})`,
        remedy: "push it where the cluster's nodes can pull it, and correct the host's image",
      },
      retryable: false,
    };
  // An image whose user is root, against runAsNonRoot.
  if (/runAsNonRoot|run as root/i.test(message ?? ""))
    return {
      reason: {
        code: "root-image",
        message: `${name}: ${words}`,
        remedy: "build it from infra/docker/gpu-worker.Dockerfile",
      },
      retryable: false,
    };
  const failed = (message: string, remedy: string | null, retryable: boolean) =>
    ({ reason: { code: "launch-failed", message: message.slice(0, 600), remedy }, retryable }) as const;
  if (startTroubles.has(reason ?? "") || (patience && reason === "CreateContainerConfigError"))
    return failed(`${name}: ${words}`, null, false);
  const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "False");
  if (patience && unscheduled)
    return failed(
      `no node takes ${name}: ${(unscheduled.message ?? unscheduled.reason ?? "").slice(0, 400)}`,
      "see what the scheduler says; workers of several GPUs need them on one node",
      true,
    );
  return null;
}
