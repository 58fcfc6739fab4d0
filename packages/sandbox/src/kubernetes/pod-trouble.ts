/** What a pod that does not come up says of why. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { imageTrouble } from "../shared/image-trouble.ts";
import type { PodFacts } from "./cluster.ts";

const pullTroubles = new Set(["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"]);
/** Its image is there, and can't be run. */
export const startTroubles: ReadonlySet<string> = new Set([
  "CreateContainerError",
  "CreateContainerConfigError",
  "RunContainerError",
  "CrashLoopBackOff",
]);
const remedy = "correct its name in the task, or push it where the cluster's nodes can pull it";

/** Null while its images may still come. */
export function pullTroubleOf(pod: PodFacts): BoundaryError | null {
  for (const { name, state } of pod.status?.containerStatuses ?? []) {
    const { reason, message } = state?.waiting ?? {};
    if (!pullTroubles.has(reason ?? "")) continue;
    const image = pod.spec.containers.find((container) => container.name === name)?.image ?? `of ${name}`;
    return imageTrouble(image, `the nodes say ${reason} ${message ?? ""}`.slice(0, 400), remedy);
  }
  return null;
}

/** Null while its containers may still start. */
export function startTroubleOf(pod: PodFacts): BoundaryError | null {
  for (const { name, state } of pod.status?.containerStatuses ?? []) {
    const { reason, message } = state?.waiting ?? {};
    if (!startTroubles.has(reason ?? "")) continue;
    return new BoundaryError("sandbox", "refused", `${name}: ${reason} ${message ?? ""}`.slice(0, 400));
  }
  return null;
}
