/**
 * The gateway's one port: WebSockets of clients and hosts, and plain HTTP for people and monitors. Everything but `/healthz` needs a
 * token. Invariants: a client token joins no host and a host token opens no sandbox; no request may have a body.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { maxFrameBytes, subprotocol } from "@rolldeck/sandbox/remote/frames";
import { SandboxId } from "@rolldeck/sandbox/remote/wire-spec";
import { WebSocketServer } from "ws";
import { type ConnectionEvents, serveClient, serveHost } from "./connections.ts";
import type { Gateway } from "./gateway.ts";
import type { Tokens } from "./tokens.ts";

export interface HttpOptions extends ConnectionEvents {
  readonly gateway: Gateway;
  readonly tokens: Tokens;
  /** PEM; null = without TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

const maxConnections = 4_096;

export function createHttpServer(options: HttpOptions): Server {
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    answer(options, request, response).catch((error: unknown) => {
      const known = error instanceof BoundaryError;
      if (!known) options.onTrouble("a request failed", error);
      const status = known ? (error.code === "refused" ? 400 : 503) : 500;
      send(response, status, { error: known ? error.message : "internal error" });
    });
  };
  const server = options.tls === null ? createServer(onRequest) : createTlsServer(options.tls, onRequest);
  server.maxConnections = maxConnections;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    handleProtocols: (asked) => (asked.has(subprotocol) ? subprotocol : false),
  });
  server.on("upgrade", (request, socket, head) => {
    const kind = options.tokens.kindOf(request.headers.authorization);
    const pathname = pathOf(request);
    if (pathname !== "/v1/client" && pathname !== "/v1/host") return reject(socket, "404 Not Found");
    if (kind === null) return reject(socket, "401 Unauthorized");
    if (pathname !== `/v1/${kind}`) return reject(socket, "403 Forbidden");
    if (request.headers["sec-websocket-protocol"] !== subprotocol) return reject(socket, "426 Upgrade Required");
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      void (kind === "host" ? serveHost : serveClient)(options.gateway, accepted, options);
    });
  });
  return server;
}

/** Without the query, as it came: anyone may send what is no URL. */
const pathOf = ({ url = "/" }: IncomingMessage): string => url.split("?", 1)[0] ?? "";

function reject(socket: Duplex, status: string): void {
  socket.on("error", () => undefined);
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

async function answer(options: HttpOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { gateway, tokens } = options;
  request.resume();
  const pathname = pathOf(request);
  const asked = `${request.method} ${pathname}`;
  if (asked === "GET /healthz") return send(response, 200, { ok: true });
  const kind = tokens.kindOf(request.headers.authorization);
  if (kind === null) return send(response, 401, { error: "a token is needed: Authorization: Bearer …" });
  if (kind !== "client") return send(response, 403, { error: "a client token is needed" });
  if (asked === "GET /metrics") {
    const { registry } = gateway.measures;
    response.setHeader("content-type", registry.contentType);
    response.end(await registry.metrics());
    return;
  }
  if (asked === "GET /v1/status") return send(response, 200, gateway.status());
  if (asked === "GET /v1/sandboxes") return send(response, 200, gateway.list(null));
  const [, host, verb] = /^POST \/v1\/hosts\/([A-Za-z0-9._-]+)\/(drain|resume)$/.exec(asked) ?? [];
  if (host !== undefined) {
    await gateway.drain(host, verb === "drain");
    return send(response, 200, {});
  }
  const id = SandboxId.safeParse(/^DELETE \/v1\/sandboxes\/(.+)$/.exec(asked)?.[1]);
  if (id.success) {
    await gateway.close(id.data, null, AbortSignal.timeout(60_000));
    return send(response, 200, {});
  }
  send(response, 404, { error: "not found" });
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return;
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(`${JSON.stringify(body)}\n`);
}
