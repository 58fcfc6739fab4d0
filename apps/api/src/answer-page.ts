/** Sign-in, sign-out, and the pages that Next draws, which need a principal as much as the API does. */
import type { Exchange } from "./http/exchange.ts";
import { continuePage } from "./http/pages.ts";
import { htmlReply, type Reply } from "./http/reply.ts";
import { localPath, serveSignIn, serveSignOut } from "./http/sign-in.ts";
import { ProblemError } from "./problems.ts";
import { MethodProblem } from "./rest/serve-rest.ts";
import type { ServerParts } from "./server-parts.ts";

/** null: the proxy streams the answer. */
export async function answerPage(parts: ServerParts, exchange: Exchange): Promise<Reply | null> {
  const { request, response, url, method, requestId } = exchange;
  if (url.pathname === "/sign-in") return signIn(parts, exchange);
  if (url.pathname === "/sign-out") {
    if (method !== "POST") throw new MethodProblem(["POST"]);
    return serveSignOut(parts.db, request, parts.port());
  }
  if (await parts.identify(request)) {
    parts.proxy.handleRequest(request, response, requestId);
    return null;
  }
  return refuse(exchange);
}

async function signIn(parts: ServerParts, { request, url, method }: Exchange): Promise<Reply> {
  // HEAD included: a link checker must not use the code up.
  if (method !== "GET") throw new MethodProblem(["GET"]);
  if (!url.searchParams.has("code") && (await parts.identify(request)))
    return { status: 303, headers: { location: localPath(url.searchParams.get("next")) }, body: "" };
  return serveSignIn(parts.db, request, url, parts.port());
}

function refuse({ request, url, method }: Exchange): Reply {
  const isNavigation = method === "GET" && (request.headers.accept ?? "").includes("text/html") && !request.headers.rsc;
  if (!isNavigation) throw new ProblemError("not-signed-in", "Sign in first.");
  const path = localPath(`${url.pathname}${url.search}`);
  if (request.headers["sec-fetch-site"] === "cross-site") return htmlReply(200, continuePage(path));
  const next = path === "/" ? "" : `?next=${encodeURIComponent(path)}`;
  return { status: 303, headers: { location: `/sign-in${next}`, "cache-control": "no-store" }, body: "" };
}
