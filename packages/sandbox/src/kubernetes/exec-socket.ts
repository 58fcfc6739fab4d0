/**
 * A command in a pod, over the API server's exec WebSocket (subprotocols v5 and v4 of channel.k8s.io: the first byte of a frame names
 * its stream). Invariants: no more than a stream's own buffer is held, the socket is paused instead; a command whose status did not
 * come ends in an error, never in an exit code.
 */

import { PassThrough } from "node:stream";
import type { KubeConfig, V1Status } from "@kubernetes/client-node";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import WebSocket from "ws";
import { z } from "zod";
import { deferred } from "../remote/deferred.ts";

export interface ExecTarget {
  readonly config: KubeConfig;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}
export interface ExecSocketRequest {
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
}
export interface ExecSocket {
  /** Both are read to their end, or `close` is called. */
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  /** Exit code. @throws BoundaryError("sandbox") when the connection ended before it was known, or the command could not start */
  readonly status: Promise<number>;
  write(bytes: Uint8Array): Promise<void>;
  /** False where the server speaks v4, which can't say that stdin is over. */
  endStdin(): boolean;
  resize(columns: number, rows: number): void;
  close(): void;
}

const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const;
const protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const connectMs = 30_000;
/** Of one frame of input; servers refuse frames that are much larger. */
const frameBytes = 64 * 1024;

const Status = z.object({
  status: z.string().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  details: z
    .object({ causes: z.array(z.object({ reason: z.string().optional(), message: z.string().optional() })).optional() })
    .optional(),
}) satisfies z.ZodType<Partial<Pick<V1Status, "status" | "reason" | "message">>>;

/** @throws BoundaryError("sandbox"): `gone` where there is no such running pod, `unavailable` where the server does not answer */
export async function openExec(
  target: ExecTarget,
  request: ExecSocketRequest,
  signal: AbortSignal,
): Promise<ExecSocket> {
  signal.throwIfAborted();
  const socket = await connect(target, request, signal);
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const { promise: status, resolve, reject } = deferred<number>();
  status.catch(() => undefined);
  const over = (): void => {
    stdout.end();
    stderr.end();
  };
  const pass = (stream: PassThrough, bytes: Buffer): void => {
    if (stream.writableEnded || stream.destroyed || stream.write(bytes)) return;
    if (!full.has(stream)) waitFor(stream);
    socket.pause();
  };
  const full = new Set<PassThrough>();
  const waitFor = (stream: PassThrough): void => {
    full.add(stream);
    const go = (): void => {
      stream.off("drain", go).off("close", go);
      full.delete(stream);
      if (full.size === 0) socket.resume();
    };
    stream.once("drain", go).once("close", go);
  };
  const onAbort = (): void => socket.terminate();
  signal.addEventListener("abort", onAbort, { once: true });
  socket.on("message", (data) => {
    const frame = asBuffer(data);
    const bytes = frame.subarray(1);
    if (frame[0] === channels.stdout && bytes.length > 0) pass(stdout, bytes);
    else if (frame[0] === channels.stderr && bytes.length > 0) pass(stderr, bytes);
    else if (frame[0] === channels.status && bytes.length > 0) readStatus(bytes).then(resolve, reject);
  });
  socket.on("error", (error) => reject(unavailable("the connection to a pod broke", error)));
  socket.on("close", () => {
    signal.removeEventListener("abort", onAbort);
    reject(signal.aborted ? signal.reason : new BoundaryError("sandbox", "gone", "the connection to the pod ended"));
    over();
  });
  // The status is the last word of a command that ended by itself.
  status.then(() => socket.close(), over);
  return {
    stdout,
    stderr,
    status,
    write: async (bytes) => {
      for (let at = 0; at < bytes.length; at += frameBytes) {
        await send(socket, channels.stdin, bytes.subarray(at, at + frameBytes));
      }
    },
    endStdin: () => {
      if (socket.protocol !== protocols[0]) return false;
      socket.send(Buffer.from([channels.close, channels.stdin]));
      return true;
    },
    resize: (columns, rows) =>
      // A terminal that is gone has no size.
      void send(socket, channels.resize, Buffer.from(JSON.stringify({ Width: columns, Height: rows }))).catch(
        () => undefined,
      ),
    close: () => socket.terminate(),
  };
}

async function connect(
  { config, namespace, pod, container }: ExecTarget,
  { command, stdin, tty }: ExecSocketRequest,
  signal: AbortSignal,
): Promise<WebSocket> {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw unavailable("the kubeconfig names no cluster");
  const query = new URLSearchParams({
    container,
    stdin: String(stdin),
    stdout: "true",
    stderr: String(!tty),
    tty: String(tty),
  });
  for (const word of command) query.append("command", word);
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`;
  const options: WebSocket.ClientOptions = { handshakeTimeout: connectMs, maxPayload: 64 * 1024 * 1024 };
  await config.applyToHTTPSOptions(options);
  const socket = new WebSocket(cluster.server.replace(/^http/, "ws") + path, protocols, options);
  const { promise, resolve, reject } = deferred<WebSocket>();
  const onAbort = (): void => socket.terminate();
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("open", () => resolve(socket));
  socket.once("unexpected-response", (_request, response) => {
    response.resume();
    const code = response.statusCode ?? 0;
    socket.terminate();
    reject(
      code >= 500 || code === 429
        ? unavailable(`the API server answered ${code}`)
        : code === 401 || code === 403
          ? new BoundaryError("sandbox", "refused", `the API server refused to run a command in a pod (${code})`)
          : new BoundaryError("sandbox", "gone", `the pod is not running (${code})`),
    );
  });
  socket.once("error", (error) =>
    reject(signal.aborted ? signal.reason : unavailable("no connection to the API server", error)),
  );
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function send(socket: WebSocket, channel: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(Buffer.concat([Buffer.from([channel]), bytes]), (error) =>
      error ? reject(unavailable("the connection to a pod broke", error)) : resolve(),
    );
  });
}

async function readStatus(bytes: Buffer): Promise<number> {
  const parsed = Status.safeParse(jsonOrUndefined(bytes.toString("utf8")));
  if (!parsed.success) throw unavailable("the API server sent a status that can't be read");
  const { status, reason, message, details } = parsed.data;
  if (status === "Success") return 0;
  const code = details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  if (reason === "NonZeroExitCode" && code !== undefined && /^\d+$/.test(code)) return Number(code);
  // Never an exit code: a container that is gone is "not found", too, and a missing program is told by the shell in the pod.
  throw new BoundaryError("sandbox", "gone", `a command could not be run in the pod: ${(message ?? "").slice(0, 300)}`);
}

const asBuffer = (data: WebSocket.RawData): Buffer =>
  Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);

const unavailable = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "unavailable", message, { cause, retryable: true });
