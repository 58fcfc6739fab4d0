/** Health, metrics, tRPC and REST. Bodies are read and judged here once, whichever of them answers. */

import { jsonDepth, maxJsonDepth } from "@rolldeck/contracts/json-depth";
import { type Exchange, header } from "./http/exchange.ts";
import { once } from "./http/once.ts";
import { decodeBody, readBody } from "./http/read-body.ts";
import { jsonReply, type Reply } from "./http/reply.ts";
import { errorFacts } from "./log.ts";
import type { Principal } from "./principal.ts";
import { ProblemError } from "./problems.ts";
import { restPrefix, serveRest } from "./rest/serve-rest.ts";
import { serveTrpc, trpcPath } from "./routers/serve-trpc.ts";
import { OpenAiError } from "./serve/openai-error.ts";
import { servedPrefix } from "./serve/served-endpoint.ts";
import type { ServerParts } from "./server-parts.ts";

export async function answerApi(parts: ServerParts, exchange: Exchange): Promise<Reply> {
  const { pathname } = exchange.url;
  if (pathname === "/healthz") return health(parts);
  if (pathname === "/metrics") return metrics(parts, exchange);
  if (pathname.startsWith(servedPrefix)) return answerServed(parts, exchange);
  // Only what has a body is waited for; who asks is known before anything is read.
  const principal = await parts.identify(exchange.request);
  const body = principal && hasBody(exchange.method) ? await readBody(exchange.request) : Buffer.alloc(0);
  if (pathname.startsWith(`${trpcPath}/`)) return answerTrpc(parts, exchange, principal, body);
  if (!pathname.startsWith(`${restPrefix}/`))
    throw new ProblemError("not-found", `There is nothing here; REST lives under ${restPrefix}.`);
  return serveRest({
    db: parts.db,
    services: parts.services,
    principal,
    // HEAD is GET without its body; sendReply leaves that out.
    method: exchange.method === "HEAD" ? "GET" : exchange.method,
    url: exchange.url,
    contentType: header(exchange.request, "content-type"),
    idempotencyKey: header(exchange.request, "idempotency-key"),
    body,
  });
}

/** Served checkpoints have keys of their own: whoever has one is nobody anywhere else. */
async function answerServed({ served }: ServerParts, { request, response, method, url }: Exchange): Promise<Reply> {
  if (served === null) return new OpenAiError(404, "This server knows no GPU worker that could serve.").reply();
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const key = /^Bearer\s+(\S+)$/iu.exec(header(request, "authorization") ?? "")?.[1] ?? null;
  const body = () => readBody(request, maxServedBodyBytes);
  return served.answer({ method, path: url.pathname, key, body, signal: gone.signal });
}

/** A long prompt as ids. */
const maxServedBodyBytes = 16 * 1024 * 1024;

const hasBody = (method: string): boolean => method === "POST" || method === "PUT" || method === "PATCH";

async function health({ db }: ServerParts): Promise<Reply> {
  try {
    await db.query("select 1");
    return jsonReply(200, { status: "ok" });
  } catch (cause) {
    throw new ProblemError("unavailable", "The database does not answer.", { cause });
  }
}

async function metrics(parts: ServerParts, { request }: Exchange): Promise<Reply> {
  if (!(await parts.identify(request)))
    throw new ProblemError("not-signed-in", "Give the scraper an API token with the scope read.");
  const { contentType, text } = await parts.metrics.render();
  return { status: 200, headers: { "content-type": contentType, "cache-control": "no-store" }, body: text };
}

async function answerTrpc(
  parts: ServerParts,
  exchange: Exchange,
  principal: Principal | null,
  body: Buffer,
): Promise<Reply> {
  const text = decodeBody(body);
  refuseDeep(text);
  refuseDeep(exchange.url.searchParams.get("input") ?? "");
  const contentType = header(exchange.request, "content-type");
  const call = () =>
    serveTrpc({
      method: exchange.method,
      url: exchange.url,
      contentType,
      body: text,
      context: { requestId: exchange.requestId, principal, services: parts.services },
      onFault: (error, path) =>
        parts.log.error({ requestId: exchange.requestId, path, ...errorFacts(error) }, "procedure failed"),
    });
  if (!principal || exchange.method !== "POST") return call();
  const request = {
    principal,
    route: `POST ${exchange.url.pathname}`,
    key: header(exchange.request, "idempotency-key"),
    contentType: contentType ?? "",
    body,
    secretReply: showsSecret(exchange.url.pathname),
  };
  return once(parts.db, request, call);
}

/** Procedures whose answer holds a secret that is shown once. */
const showingSecrets = ["auth.createToken", "servings.start"];

/** By the name that tRPC will read: it decodes the path. One that can't be decoded names nothing, and keeps nothing. */
function showsSecret(pathname: string): boolean {
  try {
    const path = decodeURIComponent(pathname);
    return showingSecrets.some((procedure) => path.includes(procedure));
  } catch {
    return true;
  }
}

function refuseDeep(text: string): void {
  if (jsonDepth(text) > maxJsonDepth)
    throw new ProblemError("bad-json", `The JSON is nested more than ${maxJsonDepth} levels deep.`);
}
