/**
 * The calls to the API server that launching workers takes, with its answers parsed and its failures in our words. Invariants: a call
 * ends within its time, whatever the server does; nothing of a request is repeated in an error, for it may hold a key.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { PassThrough } from "node:stream";
import type { CoreV1Api, KubeConfig, V1Pod, V1Secret } from "@kubernetes/client-node";
import type { KubernetesEndpoint } from "@rolldeck/contracts/host-endpoint";
import type { LogOptions } from "@rolldeck/contracts/ports/fleet";
import { z } from "zod";
import { LaunchFailure } from "../launch-failure.ts";
import { Node, Pod } from "./answers.ts";
import { mainContainer } from "./worker-pod.ts";

const callMs = 20_000;

export interface ClusterPlace {
  /** The host's name, for the words of a failure. */
  readonly name: string;
  readonly endpoint: KubernetesEndpoint;
}

export class FleetCluster {
  readonly #place: ClusterPlace;
  readonly #config: KubeConfig;
  readonly #core: CoreV1Api;
  readonly #logOf: InstanceType<typeof import("@kubernetes/client-node").Log>;

  private constructor(place: ClusterPlace, config: KubeConfig, client: typeof import("@kubernetes/client-node")) {
    this.#place = place;
    this.#config = config;
    this.#core = config.makeApiClient(client.CoreV1Api);
    this.#logOf = new client.Log(config);
  }

  /** The client is larger than all the rest of a process: it is loaded for those that have a cluster. @throws LaunchFailure */
  static async open(place: ClusterPlace): Promise<FleetCluster> {
    const { kubeconfig, context } = place.endpoint;
    const client = await import("@kubernetes/client-node");
    try {
      const config = new client.KubeConfig();
      config.loadFromString(await readFile(kubeconfig, "utf8"));
      if (context !== null) config.setCurrentContext(context);
      if (config.getCurrentCluster() === null) throw new Error(`it has no context ${context ?? "that is current"}`);
      return new FleetCluster(place, config, client);
    } catch (cause) {
      const message = `${kubeconfig} can't be used for ${place.name}: ${textOf(cause)}`;
      const remedy = "name a kubeconfig that the account of this server can read, and a context of it";
      throw new LaunchFailure(
        { code: "unavailable", message: message.slice(0, 600), remedy },
        { cause, retryable: true },
      );
    }
  }

  async version(signal: AbortSignal): Promise<string> {
    const { VersionApi } = await import("@kubernetes/client-node");
    const asked = this.#config.makeApiClient(VersionApi).getCode();
    return (await this.#call("asking its version", asked, signal)).gitVersion;
  }

  async nodes(signal: AbortSignal): Promise<Node[]> {
    const labelSelector = selectorOf(this.#place.endpoint.nodeSelector);
    const what = "listing nodes";
    const list = await this.#call(what, this.#core.listNode({ labelSelector }), signal);
    return this.#understood(what, z.array(Node), list.items);
  }

  async pods(labels: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Pod[]> {
    const what = "listing workers";
    const asked = this.#core.listNamespacedPod({ ...this.#in, labelSelector: selectorOf(labels) });
    return this.#understood(what, z.array(Pod), (await this.#call(what, asked, signal)).items);
  }

  /** Null where there is none. */
  async pod(name: string, signal: AbortSignal): Promise<Pod | null> {
    const what = "looking at a worker";
    const found = await this.#call(what, this.#unless404(this.#core.readNamespacedPod({ ...this.#in, name })), signal);
    return found === null ? null : this.#understood(what, Pod, found);
  }

  async createPod(body: V1Pod, signal: AbortSignal): Promise<Pod> {
    const what = `starting ${body.metadata?.name}`;
    const made = await this.#call(what, this.#core.createNamespacedPod({ ...this.#in, body }), signal);
    return this.#understood(what, Pod, made);
  }

  async createSecret(body: V1Secret, signal: AbortSignal): Promise<void> {
    await this.#call("giving a worker its key", this.#core.createNamespacedSecret({ ...this.#in, body }), signal);
  }

  /** Its secret goes with it; that is deleted by name as well, for where nothing collects what has lost its owner. */
  async deletePod(name: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const gracePeriodSeconds = Math.ceil(graceMs / 1_000);
    const removal = this.#core.deleteNamespacedPod({ ...this.#in, name, gracePeriodSeconds });
    await this.#call("ending a worker", this.#unless404(removal), signal);
    const secret = this.#core.deleteNamespacedSecret({ ...this.#in, name });
    await this.#call("removing a worker's key", this.#unless404(secret), signal);
  }

  /** Its output as it comes; what stops it is the signal, or the pod's end. */
  async *log(name: string, { tail, follow }: LogOptions, signal: AbortSignal): AsyncGenerator<string> {
    const piped = new PassThrough();
    const options = { follow, tailLines: tail, timestamps: true };
    const asked = this.#logOf.log(this.#in.namespace, name, mainContainer, piped, options);
    const reading = await this.#call("reading a worker's log", asked, signal);
    const end = (): void => {
      reading.abort();
      piped.end();
    };
    signal.addEventListener("abort", end, { once: true });
    // A connection that breaks ends a log, as its worker does: whoever follows it looks again.
    piped.on("error", () => undefined);
    try {
      piped.setEncoding("utf8");
      let rest = "";
      for await (const piece of piped as AsyncIterable<string>) {
        const lines = `${rest}${piece}`.split("\n");
        rest = (lines.pop() ?? "").slice(0, 4_000);
        yield* lines.map((line) => line.slice(0, 4_000));
      }
      if (rest !== "") yield rest;
    } finally {
      signal.removeEventListener("abort", end);
      end();
    }
  }

  get #in(): { readonly namespace: string } {
    return { namespace: this.#place.endpoint.namespace };
  }

  async #unless404<T>(call: Promise<T>): Promise<T | null> {
    try {
      return await call;
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  #understood<T extends z.ZodType>(what: string, schema: T, answer: unknown): z.output<T> {
    const read = schema.safeParse(answer);
    if (read.success) return read.data;
    const fields = read.error.issues.map(({ path }) => path.join(".")).slice(0, 5);
    const message = `${what}: ${this.#place.name} answers what no Kubernetes does (${fields.join(", ")})`.slice(0, 600);
    throw new LaunchFailure({ code: "unavailable", message, remedy: null }, { cause: read.error, retryable: true });
  }

  async #call<T>(what: string, call: Promise<T>, signal: AbortSignal): Promise<T> {
    const limit = AbortSignal.timeout(callMs);
    const either = AbortSignal.any([signal, limit]);
    call.catch(() => undefined);
    try {
      return await Promise.race([call, aborted(either)]);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#inOurWords(what, limit.aborted ? new Error(`no answer in ${callMs / 1_000} s`) : error);
    }
  }

  #inOurWords(what: string, error: unknown): LaunchFailure {
    if (error instanceof LaunchFailure) return error;
    const status = statusOf(error);
    const { name } = this.#place;
    const message = (text: string): string => text.slice(0, 600);
    if (status === null || status >= 500 || status === 429) {
      const remedy = `check that \`kubectl get pods\` works with its kubeconfig`;
      const words = message(`the cluster of ${name} does not answer (${what}: ${textOf(error)})`);
      return new LaunchFailure({ code: "unavailable", message: words, remedy }, { cause: error, retryable: true });
    }
    const remedy = status === 401 || status === 403 ? `let its account do so: ${rights}` : null;
    const words = message(`${what}: the cluster of ${name} says: ${toldBy(error)}`);
    return new LaunchFailure({ code: "launch-failed", message: words, remedy }, { cause: error });
  }
}

/** What the kubeconfig's account needs. */
const rights =
  "get, list, create and delete pods, get pods/log, create and delete secrets in the namespace; list nodes";

const selectorOf = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");

async function aborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

const Answer = z.object({ code: z.int(), body: z.unknown() });
const Told = z.object({ message: z.string() });

function statusOf(error: unknown): number | null {
  const parsed = Answer.safeParse(error);
  return parsed.success ? parsed.data.code : null;
}

const textOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  return (error instanceof Error && error.cause instanceof Error ? `${text}: ${error.cause.message}` : text).slice(
    0,
    300,
  );
};

/** The message of the server's Status; nothing else of the answer. */
function toldBy(error: unknown): string {
  const { body } = Answer.parse(error);
  let status: unknown = body;
  try {
    if (typeof body === "string") status = JSON.parse(body);
  } catch {
    // Not a Status: its code says enough.
  }
  const told = Told.safeParse(status);
  return told.success ? told.data.message.slice(0, 400) : `status ${Answer.parse(error).code}`;
}
