/**
 * The part of the Kubernetes API that sandboxes and GPU workers use, over HTTP and WebSocket, with containers of a Docker daemon as pods: no API server
 * can be had where the tests run. It keeps pods as they were asked for and checks what a real one would refuse; network policies and
 * daemon sets are only kept and counted, nothing enforces them.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Docker from "dockerode";
import { WebSocketServer } from "ws";
import { reply } from "./kube-answers.ts";
import { runExec } from "./kube-exec.ts";
import { Handlers, type Moods, token } from "./kube-handlers.ts";
import { dropped, type HeldPod, type KubeNode } from "./kube-pod.ts";

export interface KubeApi {
  readonly url: string;
  /** A kubeconfig that leads here. */
  readonly kubeconfig: string;
  readonly policies: ReadonlyMap<string, unknown>;
  readonly daemonSets: ReadonlyMap<string, unknown>;
  readonly secrets: ReadonlyMap<string, unknown>;
  /** Nodes of the cluster, none at first; GPUs that pods ask for are counted against what they have to give. */
  readonly nodes: KubeNode[];
  pods(): readonly string[];
  /** The next creation is refused as a quota would. */
  refuseNext(code: number, message: string): void;
  /** Changes of pods are refused so from now on; null: no longer. */
  refusePatches(code: number | null): void;
  /** Images stay on their way for this reason; null: no longer. */
  holdPulls(reason: string | null): void;
  close(): Promise<void>;
}

export async function startKubeApi(socketPath: string): Promise<KubeApi> {
  const docker = new Docker({ socketPath });
  const pods = new Map<string, HeldPod>();
  const policies = new Map<string, unknown>();
  const daemonSets = new Map<string, unknown>();
  const secrets = new Map<string, unknown>();
  const nodes: KubeNode[] = [];
  const moods: Moods = { refusals: [], patchCode: null, held: null };
  const handlers = new Handlers(docker, pods, { policies, daemonSets, secrets }, nodes, moods);
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
    secrets,
    nodes,
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
