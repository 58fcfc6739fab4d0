/**
 * The part of the Kubernetes API that sandboxes use, over HTTP and WebSocket, with containers of a Docker daemon as pods: no API server
 * can be had where the tests run. It keeps pods as they were asked for and checks what a real one would refuse; network policies and
 * daemon sets are only kept and counted, nothing enforces them.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Docker from "dockerode";
import { WebSocketServer } from "ws";
import { z } from "zod";
import { runExec } from "./kube-exec.ts";
import { dropped, type HeldPod, mountsOf, Pod, writeFolders } from "./kube-pod.ts";

export interface KubeApi {
  readonly url: string;
  /** A kubeconfig that leads here. */
  readonly kubeconfig: string;
  readonly policies: ReadonlyMap<string, unknown>;
  readonly daemonSets: ReadonlyMap<string, unknown>;
  pods(): readonly string[];
  /** The next creation is refused as a quota would. */
  refuseNext(code: number, message: string): void;
  /** Changes of pods are refused so from now on; null: no longer. */
  refusePatches(code: number | null): void;
  /** Images stay on their way for this reason; null: no longer. */
  holdPulls(reason: string | null): void;
  close(): Promise<void>;
}

interface Moods {
  readonly refusals: { code: number; message: string }[];
  patchCode: number | null;
  held: string | null;
}

const token = "test-token-of-the-kube-api";

export async function startKubeApi(socketPath: string): Promise<KubeApi> {
  const docker = new Docker({ socketPath });
  const pods = new Map<string, HeldPod>();
  const policies = new Map<string, unknown>();
  const daemonSets = new Map<string, unknown>();
  const moods: Moods = { refusals: [], patchCode: null, held: null };
  const handlers = new Handlers(docker, pods, { policies, daemonSets }, moods);
  // Commands are part of the address, and may be long.
  const server = createServer({ maxHeaderSize: 1024 * 1024 }, (request, response) => {
    handlers.answer(request, response).catch((error: unknown) => {
      reply(response, 500, { kind: "Status", status: "Failure", message: String(error) });
    });
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  server.on("upgrade", (request, socket, head) => {
    const refuse = (code: number) => socket.end(`HTTP/1.1 ${code} Refused\r\nConnection: close\r\n\r\n`);
    if (request.headers.authorization !== `Bearer ${token}`) return refuse(401);
    handlers
      .runningContainer(request.url ?? "")
      .then((found) => {
        if (found === null) refuse(404);
        else
          sockets.handleUpgrade(
            request,
            socket,
            head,
            (opened) => void runExec(docker, found, request.url ?? "", opened),
          );
      })
      .catch(() => refuse(500));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    kubeconfig: JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server: url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
      "current-context": "test",
    }),
    policies,
    daemonSets,
    pods: () => [...pods.keys()],
    refuseNext: (code, message) => void moods.refusals.push({ code, message }),
    refusePatches: (code) => {
      moods.patchCode = code;
    },
    holdPulls: (reason) => {
      moods.held = reason;
    },
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all([...pods.values()].map(dropped));
    },
  };
}

class Handlers {
  constructor(
    private readonly docker: Docker,
    private readonly pods: Map<string, HeldPod>,
    private readonly kept: Readonly<Record<"policies" | "daemonSets", Map<string, unknown>>>,
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
    if (what === "networkpolicies") return this.#kept(this.kept.policies, request, response, name);
    if (what === "daemonsets") return this.#kept(this.kept.daemonSets, request, response, name);
    failure(response, 404, "NotFound", `nothing at ${pathname}`);
  }

  async #pods(request: IncomingMessage, response: ServerResponse, name: string | undefined, selector: string | null) {
    if (request.method === "POST") return this.#create(request, response);
    if (name === undefined) {
      const wanted = (selector ?? "")
        .split(",")
        .filter(Boolean)
        .map((part) => part.split("="));
      const held = [...this.pods.values()].filter(({ pod }) =>
        wanted.every(([key = "", value]) => pod.metadata.labels[key] === value),
      );
      const items: object[] = await Promise.all(held.map((one) => this.#status(one)));
      for (const [key = "", value = ""] of wanted) {
        if (key === "rolldeck.dev/pull" && this.kept.daemonSets.has(value)) items.push(await this.#puller(value));
      }
      return reply(response, 200, { apiVersion: "v1", kind: "PodList", metadata: {}, items });
    }
    const held = this.pods.get(name);
    if (held === undefined) return failure(response, 404, "NotFound", `pods "${name}" not found`);
    if (request.method === "DELETE") {
      this.pods.delete(name);
      await dropped(held);
    }
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

  async #create(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = this.moods.refusals.shift();
    const parsed = Pod.safeParse(JSON.parse(await bodyOf(request)));
    if (refusal) return failure(response, refusal.code, "Forbidden", refusal.message);
    if (!parsed.success) return failure(response, 422, "Invalid", parsed.error.message);
    const pod = parsed.data;
    if (this.pods.has(pod.metadata.name)) return failure(response, 409, "AlreadyExists", "it exists");
    const held: HeldPod = { folders: new Map(), pod, createdAt: new Date(), container: null, trouble: null };
    this.pods.set(pod.metadata.name, held);
    this.#start(held).catch((error: unknown) => {
      const missing = error instanceof Error && "statusCode" in error && error.statusCode === 404;
      held.trouble = { reason: missing ? "ErrImagePull" : "CreateContainerError", message: String(error) };
    });
    reply(response, 201, await this.#status(held));
  }

  async #start(held: HeldPod): Promise<void> {
    const [main] = held.pod.spec.containers;
    if (main === undefined) return;
    const { binds, tmpfs } = mountsOf(held, main);
    const memory = Number.parseInt(main.resources.limits.memory ?? "512", 10) * 1024 * 1024;
    const container = await this.docker.createContainer({
      Image: main.image,
      Entrypoint: main.command,
      Cmd: main.args,
      OpenStdin: main.stdin,
      WorkingDir: main.workingDir,
      Env: main.env.map(({ name, value }) => `${name}=${value}`),
      User: main.securityContext.runAsUser === undefined ? undefined : String(main.securityContext.runAsUser),
      HostConfig: {
        NetworkMode: "none",
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

  async #status({ pod, createdAt, container, trouble }: HeldPod) {
    const state = await container?.inspect().then(
      (facts) => facts.State,
      () => null,
    );
    const phase = state?.Running ? "Running" : state?.Status === "exited" ? "Succeeded" : "Pending";
    const waiting = trouble === null ? {} : { waiting: trouble };
    const first = pod.spec.containers[0]?.name ?? "main";
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...pod.metadata, creationTimestamp: createdAt.toISOString() },
      spec: pod.spec,
      status: {
        phase,
        containerStatuses: [
          { name: first, ready: phase === "Running", restartCount: 0, image: "", imageID: "", state: waiting },
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

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function reply(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const failure = (response: ServerResponse, code: number, reason: string, message: string): void =>
  reply(response, code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message });
