/**
 * Passes everything that is not ours to Next: requests and upgrades, streamed both ways. Until Next answers, a person sees the
 * "starting" page, which tries again by itself.
 */
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import { ProblemError, toProblem } from "../problems.ts";
import { noPagesPage, startingPage } from "./pages.ts";
import { htmlReply, problemReply, sendReply } from "./reply.ts";

/** Headers that belong to one connection, not to the message. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const notUpYet = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENOENT", "EPIPE"]);

type Headers = Record<string, string | string[]>;

function forwardable(headers: IncomingMessage["headers"]): Headers {
  const named = String(headers.connection ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  const kept: Headers = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !hopByHop.has(name) && !named.includes(name)) kept[name] = value;
  return kept;
}

function upstreamHeaders(request: IncomingMessage): Headers {
  const headers = forwardable(request.headers);
  headers["x-forwarded-host"] = request.headers.host ?? "";
  headers["x-forwarded-proto"] ??= "http";
  headers["x-forwarded-for"] = request.socket.remoteAddress ?? "";
  // An API secret is no business of the page renderer.
  delete headers.authorization;
  return headers;
}

export class WebProxy {
  readonly #target: URL | null;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });

  constructor(target: URL | null) {
    this.#target = target;
  }

  handleRequest(request: IncomingMessage, response: ServerResponse, requestId: string): void {
    if (!this.#target) {
      sendReply(request, response, htmlReply(404, noPagesPage()));
      return;
    }
    const upstream = httpRequest({
      agent: this.#agent,
      host: this.#target.hostname,
      port: this.#target.port,
      method: request.method,
      path: request.url,
      headers: upstreamHeaders(request),
    });
    upstream.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, forwardable(answer.headers));
      // Either side may go away in the middle: pipeline ends the other, and there is nobody left to tell.
      pipeline(answer, response, () => undefined);
    });
    upstream.on("error", (error) => failed(request, response, requestId, error));
    response.on("close", () => upstream.destroy());
    pipeline(request, upstream, () => undefined);
  }

  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!this.#target) {
      socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
      return;
    }
    const upstream = httpRequest({
      host: this.#target.hostname,
      port: this.#target.port,
      method: request.method,
      path: request.url,
      headers: { ...upstreamHeaders(request), connection: "Upgrade", upgrade: request.headers.upgrade ?? "websocket" },
    });
    const refuse = () => socket.end("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n");
    upstream.on("upgrade", (answer, upstreamSocket, upstreamHead) => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${rawHeaders(answer)}\r\n`);
      if (upstreamHead.length > 0) socket.write(upstreamHead);
      if (head.length > 0) upstreamSocket.write(head);
      pipeline(socket, upstreamSocket, socket, () => undefined);
    });
    // Next answered with a plain response: it does not speak that protocol here.
    upstream.on("response", refuse);
    upstream.on("error", refuse);
    socket.on("error", () => upstream.destroy());
    upstream.end();
  }

  close(): void {
    this.#agent.destroy();
  }
}

function rawHeaders(answer: IncomingMessage): string {
  let text = "";
  for (let at = 0; at + 1 < answer.rawHeaders.length; at += 2)
    text += `${answer.rawHeaders[at]}: ${answer.rawHeaders[at + 1]}\r\n`;
  return text;
}

const wantsPage = (request: IncomingMessage): boolean =>
  request.method === "GET" && (request.headers.accept ?? "").includes("text/html") && !request.headers.rsc;

function failed(request: IncomingMessage, response: ServerResponse, requestId: string, error: Error): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const starting = "code" in error && typeof error.code === "string" && notUpYet.has(error.code);
  const detail = new ProblemError("unavailable", "The pages do not answer yet.", { cause: error });
  const again = { "retry-after": "1" };
  const page = starting && wantsPage(request);
  sendReply(
    request,
    response,
    page ? htmlReply(503, startingPage(), again) : problemReply(toProblem(detail, requestId), again),
  );
}
