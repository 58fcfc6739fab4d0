/**
 * The one public HTTP server. In this order, for every request and upgrade: its Host must name this server, what changes
 * something must not come from a foreign page, then the path decides who answers, and everything but health, sign-in and the
 * API's description needs a principal.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { answerApi } from "./answer-api.ts";
import { answerPage } from "./answer-page.ts";
import { type Exchange, isSafe, newRequestId, parseUrl } from "./http/exchange.ts";
import { problemReply, type Reply, sendReply } from "./http/reply.ts";
import { errorFacts } from "./log.ts";
import { ProblemError, toProblem } from "./problems.ts";
import { MethodProblem, restPrefix, routeLabel } from "./rest/serve-rest.ts";
import { trpcPath } from "./routers/serve-trpc.ts";
import type { ServerParts } from "./server-parts.ts";

export function createApiServer(parts: ServerParts): Server {
  const server = createServer({ maxHeaderSize: 32 * 1024 });
  server.on("request", (request, response) => void handle(parts, request, response));
  server.on("upgrade", (request, socket, head) => void handleUpgrade(parts, request, socket, head));
  server.on("clientError", (_error, socket) => {
    // Not HTTP, or headers too large: there is no request to answer properly.
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    else socket.destroy();
  });
  return server;
}

async function handle(parts: ServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const startedAt = performance.now();
  const requestId = newRequestId();
  response.setHeader("x-request-id", requestId);
  const method = request.method ?? "GET";
  let label = "unknown";
  response.on("close", () =>
    parts.metrics.observe(method, label, response.statusCode, (performance.now() - startedAt) / 1000),
  );
  try {
    refuseForeign(parts, request, method);
    const url = parseUrl(request);
    label = labelOf(url.pathname);
    const reply = await answer(parts, { request, response, requestId, method, url });
    if (reply) sendReply(request, response, reply);
  } catch (error) {
    sendReply(request, response, faultReply(parts, error, requestId, label));
  }
}

/** @throws ProblemError */
function refuseForeign({ trusted }: ServerParts, request: IncomingMessage, method: string): void {
  if (!trusted.hostAllowed(request))
    throw new ProblemError(
      "foreign-origin",
      "This server does not answer to that Host. Names besides loopback are listed in ROLLDECK_ALLOWED_HOSTS.",
    );
  if (!isSafe(method) && !trusted.originAllowed(request))
    throw new ProblemError("foreign-origin", "The request comes from a page of another origin.");
}

/** null: the answer is being streamed by someone else. */
async function answer(parts: ServerParts, exchange: Exchange): Promise<Reply | null> {
  const { pathname } = exchange.url;
  if (isUnder(pathname, "/socket.io")) {
    parts.sockets.handleRequest(exchange.request, exchange.response);
    return null;
  }
  if (pathname === "/healthz" || pathname === "/metrics" || isUnder(pathname, "/api"))
    return answerApi(parts, exchange);
  return answerPage(parts, exchange);
}

const isUnder = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

/** For metrics: the address without anything a client chose. */
function labelOf(path: string): string {
  if (isUnder(path, restPrefix)) return routeLabel(path);
  const known = [trpcPath, "/api/serve", "/socket.io", "/healthz", "/metrics", "/sign-in", "/sign-out"];
  return known.find((prefix) => isUnder(path, prefix)) ?? "page";
}

function faultReply(parts: ServerParts, error: unknown, requestId: string, label: string): Reply {
  const problem = toProblem(error, requestId);
  if (problem.status >= 500) parts.log.error({ requestId, route: label, ...errorFacts(error) }, "request failed");
  const headers: Record<string, string> = {};
  if (error instanceof MethodProblem) headers.allow = error.allowed.join(", ");
  if (problem.status === 401) headers["www-authenticate"] = "Bearer";
  if (problem.status === 413) headers.connection = "close";
  return problemReply(problem, headers);
}

async function handleUpgrade(
  parts: ServerParts,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const refuse = (status: string) => socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  // Until someone takes it over, a reset connection must not end the process.
  socket.on("error", () => socket.destroy());
  try {
    if (!parts.trusted.hostAllowed(request) || !parts.trusted.originAllowed(request))
      return void refuse("403 Forbidden");
    const { pathname } = parseUrl(request);
    if (isUnder(pathname, "/socket.io")) return parts.sockets.handleUpgrade(request, socket, head);
    if (!(await parts.identify(request))) return void refuse("401 Unauthorized");
    parts.proxy.handleUpgrade(request, socket, head);
  } catch (error) {
    parts.log.error(errorFacts(error), "upgrade failed");
    refuse("500 Internal Server Error");
  }
}
