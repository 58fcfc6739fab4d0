/** What the tests' API server does with each request, and its node with each pod. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type Docker from "dockerode";
import { z } from "zod";
import { bodyOf, failure, fits, reply, sendLog, termsOf } from "./kube-answers.ts";
import {
  dropped,
  type HeldPod,
  type KubeNode,
  mountsOf,
  Pod,
  podNetwork,
  podNetworkName,
  unschedulable,
  writeFolders,
} from "./kube-pod.ts";

export const token = "test-token-of-the-kube-api";

export interface Moods {
  readonly refusals: { code: number; message: string }[];
  patchCode: number | null;
  held: string | null;
}

export class Handlers {
  constructor(
    private readonly docker: Docker,
    private readonly pods: Map<string, HeldPod>,
    private readonly kept: Readonly<Record<"policies" | "daemonSets" | "secrets", Map<string, unknown>>>,
    private readonly nodes: readonly KubeNode[],
    private readonly moods: Moods,
  ) {}

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    if (request.headers.authorization !== `Bearer ${token}`) return failure(response, 401, "Unauthorized", "no token");
    const [, what = "", name] = /\/namespaces\/[^/]+\/(\w+)(?:\/([^/]+))?$/.exec(pathname) ?? [];
    if (pathname === "/version" || pathname === "/version/")
      return reply(response, 200, {
        major: "1",
        minor: "29",
        gitVersion: "v1.29.0",
        gitCommit: "",
        gitTreeState: "",
        buildDate: "",
        goVersion: "",
        compiler: "",
        platform: "",
      });
    if (what === "pods") return this.#pods(request, response, name, searchParams.get("labelSelector"));
    const logOf = /\/pods\/([^/]+)\/log$/.exec(pathname)?.[1];
    if (logOf !== undefined) return sendLog(this.pods.get(logOf)?.container ?? null, searchParams, response);
    if (pathname === "/api/v1/nodes") return this.#nodes(response, searchParams.get("labelSelector"));
    if (what === "secrets") return this.#kept(this.kept.secrets, request, response, name);
    if (what === "networkpolicies") return this.#kept(this.kept.policies, request, response, name);
    if (what === "daemonsets") return this.#kept(this.kept.daemonSets, request, response, name);
    failure(response, 404, "NotFound", `nothing at ${pathname}`);
  }

  async #pods(request: IncomingMessage, response: ServerResponse, name: string | undefined, selector: string | null) {
    if (request.method === "POST") return this.#create(request, response);
    if (name === undefined) {
      const wanted = termsOf(selector);
      const held = [...this.pods.values()].filter(({ pod }) => fits(pod.metadata.labels, wanted));
      const items: object[] = await Promise.all(held.map((one) => this.#status(one)));
      for (const [key = "", value = ""] of wanted) {
        if (key === "rolldeck.dev/pull" && this.kept.daemonSets.has(value)) items.push(await this.#puller(value));
      }
      return reply(response, 200, { apiVersion: "v1", kind: "PodList", metadata: {}, items });
    }
    const held = this.pods.get(name);
    if (held === undefined) return failure(response, 404, "NotFound", `pods "${name}" not found`);
    if (request.method === "DELETE")
      await this.#end(held, request, new URL(request.url ?? "/", "http://localhost").searchParams);
    if (request.method === "PATCH") {
      const { patchCode } = this.moods;
      if (patchCode !== null) return failure(response, patchCode, "Refused", "no changes are taken now");
      if (request.headers["content-type"] !== "application/merge-patch+json")
        return failure(response, 415, "UnsupportedMediaType", `no patch: ${request.headers["content-type"]}`);
      const { metadata } = AnnotationsPatch.parse(JSON.parse(await bodyOf(request)));
      Object.assign(held.pod.metadata.annotations, metadata.annotations);
      writeFolders(held);
    }
    reply(response, 200, await this.#status(held));
  }

  /** At once, or when its container has had its grace: it is there until then. */
  async #end(held: HeldPod, request: IncomingMessage, query: URLSearchParams): Promise<void> {
    const { name } = held.pod.metadata;
    request.resume();
    const graceS = Number(query.get("gracePeriodSeconds") ?? "0");
    if (graceS === 0) {
      this.pods.delete(name);
      await dropped(held);
      return;
    }
    held.pod.metadata.deletionTimestamp = new Date().toISOString();
    const stopping = held.container?.stop({ t: graceS }).catch(() => undefined) ?? Promise.resolve();
    void stopping.then(() => dropped(held)).then(() => this.pods.delete(name));
  }

  #nodes(response: ServerResponse, selector: string | null): void {
    const items = this.nodes.filter(({ metadata }) => fits(metadata.labels, termsOf(selector)));
    reply(response, 200, { apiVersion: "v1", kind: "NodeList", metadata: {}, items });
  }

  /** Waits for secrets, as a node does. */
  async #environment(held: HeldPod): Promise<string[]> {
    const [main] = held.pod.spec.containers;
    const values = (main?.env ?? []).map(async ({ name, value, valueFrom }) => {
      if (valueFrom === undefined) return `${name}=${value ?? ""}`;
      const { name: secret, key } = valueFrom.secretKeyRef;
      while (this.pods.has(held.pod.metadata.name)) {
        const found = Secret.safeParse(this.kept.secrets.get(secret));
        if (found.success) return `${name}=${Buffer.from(found.data.data[key] ?? "", "base64").toString()}`;
        held.trouble = { reason: "CreateContainerConfigError", message: `secret "${secret}" not found` };
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error("the pod was deleted");
    });
    const environment = await Promise.all(values);
    held.trouble = null;
    return environment;
  }

  async #create(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = this.moods.refusals.shift();
    const parsed = Pod.safeParse(JSON.parse(await bodyOf(request)));
    if (refusal) return failure(response, refusal.code, "Forbidden", refusal.message);
    if (!parsed.success) return failure(response, 422, "Invalid", parsed.error.message);
    const pod = parsed.data;
    if (this.pods.has(pod.metadata.name)) return failure(response, 409, "AlreadyExists", "it exists");
    const held: HeldPod = { folders: new Map(), pod, createdAt: new Date(), container: null, trouble: null };
    pod.metadata.uid = `uid-of-${pod.metadata.name}`;
    this.pods.set(pod.metadata.name, held);
    if (unschedulable(held, this.pods, this.nodes) !== null) return reply(response, 201, await this.#status(held));
    this.#start(held).catch((error: unknown) => {
      const missing = error instanceof Error && "statusCode" in error && error.statusCode === 404;
      held.trouble = { reason: missing ? "ErrImagePull" : "CreateContainerError", message: String(error) };
    });
    reply(response, 201, await this.#status(held));
  }

  async #start(held: HeldPod): Promise<void> {
    const [main] = held.pod.spec.containers;
    if (main === undefined) return;
    const environment = await this.#environment(held);
    const network = main.ports.length > 0 ? await podNetwork(this.docker) : "none";
    const { binds, tmpfs } = mountsOf(held, main);
    const memory = Number.parseInt(main.resources.limits.memory ?? "512", 10) * 1024 * 1024;
    const container = await this.docker.createContainer({
      Image: main.image,
      Entrypoint: main.command,
      Cmd: main.args,
      OpenStdin: main.stdin,
      WorkingDir: main.workingDir,
      Env: environment,
      User: main.securityContext.runAsUser === undefined ? undefined : String(main.securityContext.runAsUser),
      HostConfig: {
        NetworkMode: network,
        ReadonlyRootfs: main.securityContext.readOnlyRootFilesystem,
        LogConfig: { Type: "json-file", Config: { "max-size": "1m" } },
        CapDrop: ["ALL"],
        SecurityOpt: ["no-new-privileges"],
        Memory: memory,
        MemorySwap: memory,
        NanoCpus: Number.parseInt(main.resources.limits.cpu ?? "1000m", 10) * 1_000_000,
        PidsLimit: 512,
        Tmpfs: tmpfs,
        Binds: binds,
        Init: false,
      },
    });
    held.container = container;
    if (!this.pods.has(held.pod.metadata.name)) {
      await container.remove({ force: true });
      return;
    }
    await container.start();
    const { activeDeadlineSeconds: lifeS } = held.pod.spec;
    if (lifeS !== undefined) setTimeout(() => void container.kill().catch(() => undefined), lifeS * 1000).unref();
  }

  async #status(held: HeldPod) {
    const { pod, createdAt, container, trouble } = held;
    const facts = (await container?.inspect().catch(() => null)) ?? null;
    const state = facts?.State;
    const over = state?.Status === "exited";
    const phase = state?.Running ? "Running" : over ? (state.ExitCode === 0 ? "Succeeded" : "Failed") : "Pending";
    const terminated = { exitCode: state?.ExitCode ?? 0, reason: state?.OOMKilled ? "OOMKilled" : "Completed" };
    const current = over ? { terminated } : trouble === null ? {} : { waiting: trouble };
    const unplaced = container === null ? unschedulable(held, this.pods, this.nodes) : null;
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: unplaced };
    const first = pod.spec.containers[0]?.name ?? "main";
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...pod.metadata, creationTimestamp: createdAt.toISOString() },
      spec: pod.spec,
      status: {
        phase,
        podIP: facts?.NetworkSettings.Networks[podNetworkName]?.IPAddress || undefined,
        conditions: unplaced === null ? [] : [condition],
        containerStatuses: [
          { name: first, ready: phase === "Running", restartCount: 0, image: "", imageID: "", state: current },
        ],
      },
    };
  }

  async #kept(
    kept: Map<string, unknown>,
    request: IncomingMessage,
    response: ServerResponse,
    name: string | undefined,
  ) {
    if (request.method === "POST") {
      const body = z
        .looseObject({ metadata: z.looseObject({ name: z.string() }) })
        .parse(JSON.parse(await bodyOf(request)));
      if (kept.has(body.metadata.name)) return failure(response, 409, "AlreadyExists", "it exists");
      kept.set(body.metadata.name, body);
      return reply(response, 201, body);
    }
    const found = name === undefined ? undefined : kept.get(name);
    if (name === undefined || found === undefined) return failure(response, 404, "NotFound", `"${name}" not found`);
    if (request.method === "DELETE") kept.delete(name);
    const numberReady = found !== undefined && kept === this.kept.daemonSets && (await this.#pullOf(found)) ? 0 : 1;
    const ready = { desiredNumberScheduled: 1, numberReady, currentNumberScheduled: 1, numberMisscheduled: 0 };
    reply(response, 200, { ...Object(found), status: ready });
  }

  /** Why a daemon set's image is not there; null: it is. */
  async #pullOf(daemonSet: unknown): Promise<{ reason: string; message: string } | null> {
    if (this.moods.held !== null) return { reason: "ContainerCreating", message: this.moods.held };
    const [container] = DaemonSet.parse(daemonSet).spec.template.spec.containers;
    return this.docker
      .getImage(container?.image ?? "")
      .inspect()
      .then(
        () => null,
        (error: unknown) => ({ reason: "ErrImagePull", message: String(error) }),
      );
  }

  async #puller(name: string) {
    const daemonSet = this.kept.daemonSets.get(name);
    const waiting = await this.#pullOf(daemonSet);
    const { containers } = DaemonSet.parse(daemonSet).spec.template.spec;
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: `${name}-x`, creationTimestamp: new Date().toISOString() },
      spec: { containers },
      status: {
        phase: waiting === null ? "Running" : "Pending",
        containerStatuses: containers.map((container) => ({
          ...{ name: container.name, ready: waiting === null, restartCount: 0, image: "", imageID: "" },
          state: waiting === null ? {} : { waiting },
        })),
      },
    };
  }

  /** Of the pod that an exec address names; null where it is not running. */
  async runningContainer(url: string): Promise<Docker.Container | null> {
    const name = /\/pods\/([^/]+)\/exec/.exec(url)?.[1];
    const container = name === undefined ? null : (this.pods.get(name)?.container ?? null);
    const facts = await container?.inspect().catch(() => null);
    return facts?.State.Running ? container : null;
  }
}

const Secret = z.looseObject({ data: z.record(z.string(), z.string()) });
const AnnotationsPatch = z.strictObject({
  metadata: z.strictObject({ annotations: z.record(z.string(), z.string()) }),
});
const DaemonSet = z.looseObject({
  spec: z.object({
    template: z.object({
      spec: z.object({ containers: z.array(z.looseObject({ name: z.string(), image: z.string() })) }),
    }),
  }),
});
