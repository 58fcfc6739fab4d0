/** Finds the route of a request and answers it. Refusals come in this order: who, where, how, what. */
import type { Queryable } from "@rolldeck/db/reads/rows";
import { once } from "../http/once.ts";
import { fileReply, jsonReply, type Reply } from "../http/reply.ts";
import { refuseUnstorable } from "../http/storable.ts";
import { nearestName } from "../nearest-name.ts";
import { mayWrite, type Principal } from "../principal.ts";
import { ProblemError } from "../problems.ts";
import type { Services } from "../services.ts";
import { openApi } from "./openapi.ts";
import { bodyInput, inputProperties, mergeInput, queryInput } from "./read-input.ts";
import { pathParameters, type Route } from "./route.ts";
import { routes } from "./routes.ts";

export const restPrefix = "/api/v1";

export interface RestExchange {
  readonly db: Queryable;
  readonly services: Services;
  readonly principal: Principal | null;
  readonly method: string;
  readonly url: URL;
  readonly contentType: string | null;
  readonly idempotencyKey: string | null;
  readonly body: Uint8Array;
}

const patterns = routes.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/gu, "([^/]+)")}$`, "u"),
  // A fixed word wins over a parameter in its place: /runs/check is not a run.
  parameters: pathParameters(route.path),
}));

/** The path's routes by method, and the values of its parameters. */
function matchPath(path: string): { route: Route; values: string[] }[] {
  const matches = patterns.flatMap(({ route, pattern, parameters }) => {
    const match = pattern.exec(path);
    return match ? [{ route, values: match.slice(1), parameters }] : [];
  });
  const fewest = Math.min(...matches.map(({ parameters }) => parameters.length));
  return matches.filter(({ parameters }) => parameters.length === fewest);
}

/** Name of the route for metrics and logs: no ids. */
export const routeLabel = (path: string): string =>
  matchPath(path.slice(restPrefix.length))[0]?.route.path ?? "unknown";

export async function serveRest(exchange: RestExchange): Promise<Reply> {
  const path = exchange.url.pathname.slice(restPrefix.length);
  if (path === "/openapi.json" && exchange.method === "GET") return jsonReply(200, openApi());
  if (!exchange.principal) throw new ProblemError("not-signed-in", "Send Authorization: Bearer with an API token.");
  const matches = matchPath(path);
  if (matches.length === 0) throw new ProblemError("not-found", `There is no ${restPrefix}${path.slice(0, 200)}.`);
  const match = matches.find(({ route }) => route.method === exchange.method);
  if (!match) throw new MethodProblem(matches.map(({ route }) => route.method));
  return answer(exchange, exchange.principal, match.route, match.values);
}

/** 405 carries what is allowed. */
export class MethodProblem extends ProblemError {
  constructor(readonly allowed: readonly string[]) {
    super("bad-method", `This address takes ${allowed.join(", ")}.`);
  }
}

function answer(exchange: RestExchange, principal: Principal, route: Route, values: readonly string[]): Promise<Reply> {
  authorise(route, principal);
  const request = {
    principal,
    route: `${exchange.method} ${exchange.url.pathname}`,
    key: route.method === "POST" ? exchange.idempotencyKey : null,
    contentType: exchange.contentType ?? "",
    body: exchange.body,
    secretReply: route.secretReply ?? false,
  };
  return once(exchange.db, request, async () => {
    const input = readInput(exchange, route, values);
    refuseUnstorable(input);
    refuseUnknown(route, input);
    const { value, location, file } = await route.run({ services: exchange.services, principal }, input);
    if (file) return fileReply(file);
    return jsonReply(route.status ?? 200, value, location ? { location: `${restPrefix}${location}` } : {});
  });
}

function authorise(route: Route, principal: Principal): void {
  if (route.needs === "owner" && principal.kind !== "owner")
    throw new ProblemError("not-allowed", "Only the owner may do this; an API token may not.");
  if (route.needs === "write" && !mayWrite(principal))
    throw new ProblemError("not-allowed", "This token has the scope read; the call needs write.");
}

function readInput(exchange: RestExchange, route: Route, values: readonly string[]): Record<string, unknown> {
  const path = Object.fromEntries(pathParameters(route.path).map((name, at) => [name, decodePart(name, values[at])]));
  const query = queryInput(route.input, exchange.url.searchParams);
  if (route.method === "GET") return mergeInput(route, path, query);
  const unexpected = Object.keys(query)[0];
  if (unexpected !== undefined)
    throw new ProblemError("bad-input", "This call takes its fields in the body, not in the query.", {
      issues: [{ path: unexpected, message: "belongs in the body" }],
    });
  return mergeInput(route, path, bodyInput(route, exchange.contentType, exchange.body));
}

function decodePart(name: string, text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? "");
  } catch (cause) {
    throw new ProblemError("bad-input", `${name} is not valid in an address.`, {
      issues: [{ path: name, message: "is not valid percent-encoding" }],
      cause,
    });
  }
}

/** Unknown keys are named with the nearest key there is. */
function refuseUnknown(route: Route, input: Readonly<Record<string, unknown>>): void {
  const known = Object.keys(inputProperties(route.input));
  const unknown = Object.keys(input).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  const issues = unknown.slice(0, 20).map((key) => {
    const nearest = nearestName(key, known);
    return { path: key.slice(0, 100), message: "unknown key", ...(nearest ? { fix: `did you mean ${nearest}?` } : {}) };
  });
  throw new ProblemError("bad-input", `${issues[0]?.path}: unknown key`, { issues });
}
