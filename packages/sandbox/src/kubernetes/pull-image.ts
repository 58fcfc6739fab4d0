/**
 * Pulls an image on every node, before a sandbox needs it: a pod of it on each, which does nothing. Invariant: it ends, with the image
 * there or with the reason why it is not, and leaves nothing in the cluster.
 */
import { createHash } from "node:crypto";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { pause } from "../shared/waiting.ts";
import type { Cluster, PodFacts } from "./cluster.ts";
import { mainContainer } from "./pod-spec.ts";
import { pullTroubleOf, startTroubles } from "./pod-trouble.ts";

const pollMs = 1_000;
const callMs = 20_000;
/** Of the largest images on the slowest lines. */
const pullMs = 1_800_000;
/** A cluster whose nodes come when they are needed has none to pull on. */
const noNodeMs = 60_000;
const pullLabel = "rolldeck.dev/pull";

export interface PullScene {
  readonly cluster: Cluster;
  /** Of the daemon set. */
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly now: () => number;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** @throws BoundaryError("sandbox", "no_image") that names the image and what the nodes say of it */
export async function pullImage(
  scene: PullScene,
  image: string,
  onProgress: (message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const name = `rolldeck-pull-${createHash("sha256").update(image).digest("hex").slice(0, 20)}`;
  await scene.cluster.createDaemonSet(pullerOf(name, image, scene.labels), signal);
  try {
    await untilPulled(scene, name, image, onProgress, signal);
  } finally {
    await scene.cluster.deleteDaemonSet(name, AbortSignal.timeout(callMs)).catch((error: unknown) => {
      scene.onTrouble(`the daemon set ${name} was not deleted`, error);
    });
  }
}

async function untilPulled(
  { cluster, now }: PullScene,
  name: string,
  image: string,
  onProgress: (message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = now();
  for (;;) {
    const state = await cluster.daemonSet(name, signal);
    if (state === null) return;
    const pods = await cluster.pods({ [pullLabel]: name }, signal);
    for (const pod of pods) {
      const trouble = pullTroubleOf(pod);
      if (trouble !== null) throw trouble;
    }
    const there = Math.max(state.ready, pods.filter(hasImage).length);
    if (state.wanted > 0 && there >= state.wanted) return;
    const waitedMs = now() - startedAt;
    if (state.wanted === 0 && waitedMs > noNodeMs) {
      onProgress(`${image}: the cluster has no node yet; it is pulled when one is there`);
      return;
    }
    const where = `on ${there} of ${state.wanted} nodes`;
    if (waitedMs > pullMs) throw tooLong(image, where, pods, waitedMs);
    onProgress(`${image}: ${where}`);
    await pause(pollMs, signal);
    signal.throwIfAborted();
  }
}

/** One that can't be started was pulled all the same. */
const hasImage = (pod: PodFacts): boolean =>
  (pod.status?.containerStatuses ?? []).some(
    ({ ready, state }) => ready || Boolean(state?.terminated) || startTroubles.has(state?.waiting?.reason ?? ""),
  );

function tooLong(image: string, where: string, pods: readonly PodFacts[], waitedMs: number): BoundaryError {
  const reasons = new Set(
    pods
      .filter((pod) => !hasImage(pod))
      .map(reasonOf)
      .filter((reason) => reason !== ""),
  );
  const why = reasons.size === 0 ? "" : ` (${[...reasons].join("; ").slice(0, 300)})`;
  const message = `image ${image} is ${where} after ${Math.round(waitedMs / 60_000)} minutes${why}: look at the nodes' room and at the registry`;
  return new BoundaryError("sandbox", "no_image", message, { retryable: true });
}

function reasonOf({ status }: PodFacts): string {
  const waiting = status?.containerStatuses?.find(({ state }) => state?.waiting)?.state?.waiting;
  const unmet = status?.conditions?.find(({ status: met, message }) => met === "False" && message);
  return [waiting?.reason, waiting?.message, unmet?.message].filter(Boolean).join(" ");
}

const pullerOf = (name: string, image: string, labels: Readonly<Record<string, string>>) => {
  const selector = { [pullLabel]: name };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, labels: { ...labels, ...selector } },
    spec: {
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: selector },
        spec: {
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: mainContainer,
              image,
              command: ["sh", "-c", "exec sleep 3600"],
              resources: { limits: { cpu: "50m", memory: "32Mi" } },
              securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
            },
          ],
        },
      },
    },
  };
};
