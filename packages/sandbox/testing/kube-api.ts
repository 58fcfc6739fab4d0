/**
 * The part of the Kubernetes API that sandboxes use, over HTTP and WebSocket, with containers of a Docker daemon as pods: no API server
 * can be had where the tests run. It keeps pods as they were asked for and checks what a real one would refuse; network policies and
 * daemon sets are only kept and counted, nothing enforces them.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import Docker from "dockerode";
import { type WebSocket, WebSocketServer } from "ws";
import { z } from "zod";

const Pod = z.looseObject({
  metadata: z.looseObject({
    name: z.string().regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/),
    labels: z.record(z.string(), z.string().max(63)).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.looseObject({
    activeDeadlineSeconds: z.int().optional(),
    automountServiceAccountToken: z.literal(false),
    volumes: z
      .array(
        z.looseObject({ name: z.string(), emptyDir: z.looseObject({ sizeLimit: z.string().optional() }).optional() }),
      )
      .default([]),
    containers: z
      .array(
        z.looseObject({
          name: z.string(),
          image: z.string(),
          command: z.array(z.string()).optional(),
          args: z.array(z.string()).optional(),
          stdin: z.boolean().default(false),
          workingDir: z.string().optional(),
          env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
          resources: z.looseObject({ limits: z.record(z.string(), z.string()).default({}) }).prefault({}),
          securityContext: z.looseObject({ runAsUser: z.int().optional() }).prefault({}),
          volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
        }),
      )
      .min(1),
  }),
});
type Pod = z.output<typeof Pod>;

export interface KubeApi {
  readonly url: string;
  /** A kubeconfig that leads here. */
  readonly kubeconfig: string;
  readonly policies: ReadonlyMap<string, unknown>;
  readonly daemonSets: ReadonlyMap<string, unknown>;
  pods(): readonly string[];
  /** The next creation is refused as a quota would. */
  refuseNext(code: number, message: string): void;
  close(): Promise<void>;
}

interface Held {
  readonly pod: Pod;
  readonly createdAt: Date;
  container: Docker.Container | null;
  /** Why it never came up. */
  trouble: { readonly reason: string; readonly message: string } | null;
}

const token = "test-token-of-the-kube-api";

export async function startKubeApi(socketPath: string): Promise<KubeApi> {
  const docker = new Docker({ socketPath });
  const pods = new Map<string, Held>();
  const policies = new Map<string, unknown>();
  const daemonSets = new Map<string, unknown>();
  const refusals: { code: number; message: string }[] = [];
  const handlers = new Handlers(docker, pods, { policies, daemonSets }, refusals);
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
    refuseNext: (code, message) => void refusals.push({ code, message }),
    close: async () => {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(
        [...pods.values()].map(({ container }) => container?.remove({ force: true }).catch(() => undefined)),
      );
    },
  };
}

class Handlers {
  constructor(
    private readonly docker: Docker,
    private readonly pods: Map<string, Held>,
    private readonly kept: Readonly<Record<"policies" | "daemonSets", Map<string, unknown>>>,
    private readonly refusals: { code: number; message: string }[],
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
      const items = await Promise.all(held.map((one) => this.#status(one)));
      return reply(response, 200, { apiVersion: "v1", kind: "PodList", metadata: {}, items });
    }
    const held = this.pods.get(name);
    if (held === undefined) return failure(response, 404, "NotFound", `pods "${name}" not found`);
    if (request.method === "DELETE") {
      this.pods.delete(name);
      await held.container?.remove({ force: true }).catch(() => undefined);
    }
    reply(response, 200, await this.#status(held));
  }

  async #create(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refusal = this.refusals.shift();
    const parsed = Pod.safeParse(JSON.parse(await bodyOf(request)));
    if (refusal) return failure(response, refusal.code, "Forbidden", refusal.message);
    if (!parsed.success) return failure(response, 422, "Invalid", parsed.error.message);
    const pod = parsed.data;
    if (this.pods.has(pod.metadata.name)) return failure(response, 409, "AlreadyExists", "it exists");
    const held: Held = { pod, createdAt: new Date(), container: null, trouble: null };
    this.pods.set(pod.metadata.name, held);
    this.#start(held).catch((error: unknown) => {
      const missing = error instanceof Error && "statusCode" in error && error.statusCode === 404;
      held.trouble = { reason: missing ? "ErrImagePull" : "CreateContainerError", message: String(error) };
    });
    reply(response, 201, await this.#status(held));
  }

  async #start(held: Held): Promise<void> {
    const [main] = held.pod.spec.containers;
    if (main === undefined) return;
    const tmpfs = Object.fromEntries(
      main.volumeMounts.map(({ name, mountPath }) => [mountPath, `rw,exec,mode=1777,size=${sizeOf(held.pod, name)}m`]),
    );
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

  async #status({ pod, createdAt, container, trouble }: Held) {
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
    const ready = { desiredNumberScheduled: 1, numberReady: 1, currentNumberScheduled: 1, numberMisscheduled: 0 };
    reply(response, 200, { ...Object(found), status: ready });
  }

  /** Of the pod that an exec address names; null where it is not running. */
  async runningContainer(url: string): Promise<Docker.Container | null> {
    const name = /\/pods\/([^/]+)\/exec/.exec(url)?.[1];
    const container = name === undefined ? null : (this.pods.get(name)?.container ?? null);
    const facts = await container?.inspect().catch(() => null);
    return facts?.State.Running ? container : null;
  }
}

/** Of an empty folder's volume, MiB. */
const sizeOf = ({ spec }: Pod, name: string): number =>
  Number.parseInt(spec.volumes.find((volume) => volume.name === name)?.emptyDir?.sizeLimit ?? "256", 10);

async function runExec(docker: Docker, container: Docker.Container, url: string, socket: WebSocket): Promise<void> {
  const query = new URL(url, "http://localhost").searchParams;
  const isOn = (name: string) => query.get(name) === "true";
  const send = (channel: number, bytes: Uint8Array) => socket.send(Buffer.concat([Buffer.from([channel]), bytes]));
  const status = (body: object) => {
    send(3, Buffer.from(JSON.stringify(body)));
    socket.close();
  };
  const taken: Promise<void> = Promise.resolve();
  // What comes before the command is started is not lost.
  const early: unknown[] = [];
  const keep = (data: unknown) => void early.push(data);
  socket.on("message", keep);
  try {
    const exec = await container.exec({
      Cmd: query.getAll("command"),
      AttachStdin: isOn("stdin"),
      AttachStdout: true,
      AttachStderr: isOn("stderr"),
      Tty: isOn("tty"),
    });
    const stream = await exec.start({ hijack: true, stdin: isOn("stdin"), Tty: isOn("tty") });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const forward = (from: PassThrough, channel: number) =>
      from.on("data", (chunk: Buffer) => {
        send(channel, chunk);
        if (socket.bufferedAmount < 4 * 1024 * 1024) return;
        stream.pause();
        const wait = setInterval(() => {
          if (socket.bufferedAmount > 1024 * 1024 && socket.readyState === socket.OPEN) return;
          clearInterval(wait);
          stream.resume();
        }, 5);
      });
    forward(stdout, 1);
    forward(stderr, 2);
    if (isOn("tty")) stream.pipe(stdout);
    else docker.modem.demuxStream(stream, stdout, stderr);
    const take = async (frame: Buffer): Promise<void> => {
      if (frame[0] === 0) stream.write(frame.subarray(1));
      else if (frame[0] === 255 && frame[1] === 0) stream.end();
      else if (frame[0] === 4) {
        const size = z.object({ Width: z.int(), Height: z.int() }).parse(JSON.parse(frame.subarray(1).toString()));
        await exec.resize({ w: size.Width, h: size.Height }).catch(() => undefined);
      }
    };
    // One after the other: a size is set before what was typed after it arrives.
    let before = taken;
    const onFrame = (data: unknown) => {
      const frame = Buffer.isBuffer(data) ? data : Buffer.concat(data as Buffer[]);
      before = before.then(() => take(frame));
    };
    for (const frame of early.splice(0)) onFrame(frame);
    socket.off("message", keep).on("message", onFrame);
    socket.on("close", () => stream.destroy());
    stream.on("error", () => socket.terminate());
    await new Promise<void>((resolve) => stream.once("end", resolve).once("close", resolve));
    const { ExitCode: code, Running: running } = await exec.inspect();
    if (running || code === null) return socket.terminate();
    if (code === 0) return status({ status: "Success" });
    status({
      status: "Failure",
      reason: "NonZeroExitCode",
      message: `command terminated with non-zero exit code: ${code}`,
      details: { causes: [{ reason: "ExitCode", message: String(code) }] },
    });
  } catch (error) {
    if (socket.readyState === socket.OPEN)
      status({ status: "Failure", reason: "InternalError", message: String(error) });
  }
}

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
