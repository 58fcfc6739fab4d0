/**
 * The few calls to the API server that sandboxes need, with its answers parsed and its failures in our words. Invariant: a call ends
 * within its time, whatever the server does.
 */

import {
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  NetworkingV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
  VersionApi,
} from "@kubernetes/client-node";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import { z } from "zod";
import { unlessAborted, within } from "../shared/waiting.ts";

const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).nullish(),
    creationTimestamp: z.coerce.date(),
    /** From when it is being ended on. */
    deletionTimestamp: z.coerce.date().nullish(),
  }),
  spec: z.object({
    containers: z.array(z.object({ name: z.string(), image: z.string().nullish(), workingDir: z.string().nullish() })),
  }),
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      message: z.string().nullish(),
      conditions: z.array(z.object({ status: z.string(), message: z.string().nullish() })).nullish(),
      containerStatuses: z
        .array(
          z.object({
            name: z.string(),
            ready: z.boolean().default(false),
            state: z
              .object({
                waiting: z.object({ reason: z.string().nullish(), message: z.string().nullish() }).nullish(),
                terminated: z.looseObject({}).nullish(),
              })
              .nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});
export type PodFacts = z.output<typeof Pod>;

const callMs = 30_000;

export class Cluster {
  readonly config: KubeConfig;
  readonly namespace: string;
  readonly #core: CoreV1Api;
  readonly #apps: AppsV1Api;
  readonly #networking: NetworkingV1Api;
  readonly #version: VersionApi;

  /** @throws what the file's parser says of it */
  constructor(kubeconfig: string, namespace: string) {
    this.config = new KubeConfig();
    this.config.loadFromString(kubeconfig);
    this.namespace = namespace;
    this.#core = this.config.makeApiClient(CoreV1Api);
    this.#apps = this.config.makeApiClient(AppsV1Api);
    this.#networking = this.config.makeApiClient(NetworkingV1Api);
    this.#version = this.config.makeApiClient(VersionApi);
  }

  async version(signal: AbortSignal): Promise<string> {
    return (await this.#call("asking the API server", this.#version.getCode(), signal)).gitVersion;
  }

  async createPod(body: V1Pod, signal: AbortSignal): Promise<PodFacts> {
    const { namespace } = this;
    return Pod.parse(await this.#call("opening a pod", this.#core.createNamespacedPod({ namespace, body }), signal));
  }

  /** Null where there is none. */
  async pod(name: string, signal: AbortSignal): Promise<PodFacts | null> {
    const { namespace } = this;
    const found = await orNull(
      this.#call("looking at a pod", this.#core.readNamespacedPod({ namespace, name }), signal),
    );
    return found === null ? null : Pod.parse(found);
  }

  async pods(labels: Readonly<Record<string, string>>, signal: AbortSignal): Promise<PodFacts[]> {
    const { namespace } = this;
    const labelSelector = Object.entries(labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(",");
    const list = this.#core.listNamespacedPod({ namespace, labelSelector });
    return (await this.#call("listing pods", list, signal)).items.map((item) => Pod.parse(item));
  }

  /** Null where there is none. */
  async annotatePod(
    name: string,
    annotations: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<PodFacts | null> {
    const { namespace } = this;
    const patch = this.#core.patchNamespacedPod(
      { namespace, name, body: { metadata: { annotations } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
    const found = await orNull(this.#call("renewing a pod", patch, signal));
    return found === null ? null : Pod.parse(found);
  }

  async deletePod(name: string, signal: AbortSignal): Promise<void> {
    const { namespace } = this;
    const deletion = this.#core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
    await orNull(this.#call("closing a pod", deletion, signal));
  }

  /** Left alone where it is there already. */
  async ensurePolicy(
    body: NonNullable<Parameters<NetworkingV1Api["createNamespacedNetworkPolicy"]>[0]>["body"],
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = this;
    const name = body.metadata?.name ?? "";
    const there = this.#networking.readNamespacedNetworkPolicy({ namespace, name });
    if ((await orNull(this.#call("looking at network policies", there, signal))) !== null) return;
    const made = this.#networking.createNamespacedNetworkPolicy({ namespace, body });
    await this.#call("making a network policy", made, signal).catch((error: unknown) => {
      if (!isAnswer(error, 409)) throw error;
    });
  }

  async createDaemonSet(
    body: NonNullable<Parameters<AppsV1Api["createNamespacedDaemonSet"]>[0]>["body"],
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = this;
    await this.#call("pulling an image", this.#apps.createNamespacedDaemonSet({ namespace, body }), signal).catch(
      (error: unknown) => {
        if (!isAnswer(error, 409)) throw error;
      },
    );
  }

  /** Nodes that are to have it, and that do; null where there is none of that name. */
  async daemonSet(
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly wanted: number; readonly ready: number } | null> {
    const { namespace } = this;
    const read = this.#apps.readNamespacedDaemonSet({ namespace, name });
    const found = await orNull(this.#call("pulling an image", read, signal));
    if (found === null) return null;
    return { wanted: found.status?.desiredNumberScheduled ?? 0, ready: found.status?.numberReady ?? 0 };
  }

  async deleteDaemonSet(name: string, signal: AbortSignal): Promise<void> {
    const { namespace } = this;
    await orNull(this.#call("pulling an image", this.#apps.deleteNamespacedDaemonSet({ namespace, name }), signal));
  }

  async #call<T>(what: string, call: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await unlessAborted(within(call, callMs, what), signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw inOurWords(what, error);
    }
  }
}

const isAnswer = (error: unknown, status: number): boolean =>
  error instanceof BoundaryError && statusOf(error.cause) === status;

async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (isAnswer(error, 404)) return null;
    throw error;
  }
}

const Answer = z.object({ code: z.int(), body: z.unknown() });
const Told = z.object({ message: z.string() });

const statusOf = (error: unknown): number | null => {
  const parsed = Answer.safeParse(error);
  return parsed.success ? parsed.data.code : null;
};

/** Which failure it is decides whether trying again can help. */
function inOurWords(what: string, cause: unknown): BoundaryError {
  if (cause instanceof BoundaryError) return cause;
  const status = statusOf(cause);
  const words = `${what}: ${toldBy(cause)}`.slice(0, 500);
  if (status === null || status >= 500) {
    return new BoundaryError("sandbox", "unavailable", words, { cause, retryable: true });
  }
  if (status === 429 || (status === 403 && /exceeded quota/i.test(words))) {
    return new BoundaryError("sandbox", "full", words, { cause, retryable: true });
  }
  return new BoundaryError("sandbox", "refused", words, { cause });
}

function toldBy(error: unknown): string {
  const answer = Answer.safeParse(error);
  if (!answer.success) return error instanceof Error ? error.message : String(error);
  const { code, body } = answer.data;
  const told = Told.safeParse(typeof body === "string" ? jsonOrUndefined(body) : body);
  return told.success ? told.data.message : `the API server answered ${code}`;
}
