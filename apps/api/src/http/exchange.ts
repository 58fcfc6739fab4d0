/** One request on its way through the server: its id, its parsed address, who asks. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ProblemError } from "../problems.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly method: string;
  readonly url: URL;
}

export const newRequestId = (): string => randomUUID();

/** @throws ProblemError for an address no path can be read from */
export function parseUrl(request: IncomingMessage): URL {
  const target = request.url ?? "/";
  try {
    // Only path and query are ever used: whatever host an absolute address names, the Host header decides.
    return new URL(target.startsWith("/") ? `http://server${target}` : target);
  } catch (cause) {
    throw new ProblemError("bad-input", "The address of the request is not valid.", { cause });
  }
}

export const header = (request: IncomingMessage, name: string): string | null => {
  const value = request.headers[name];
  return value === undefined ? null : Array.isArray(value) ? (value[0] ?? null) : value;
};

export const isSafe = (method: string): boolean => method === "GET" || method === "HEAD" || method === "OPTIONS";
