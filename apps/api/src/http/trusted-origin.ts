/**
 * Which names this server answers to, and whose requests may change something.
 *
 * A foreign Host is a rebound DNS name: a page elsewhere that reaches us under its own name. A foreign Origin is a page
 * elsewhere that reaches us under ours. Both are refused whatever secrets come along; being on loopback grants nothing.
 */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

const loopbackNames = ["localhost", "127.0.0.1", "[::1]", "::1"];

export class TrustedOrigin {
  readonly #names: ReadonlySet<string>;

  /** @param allowed configured names, with or without port; the bound host counts when it is a plain name or address */
  constructor(allowed: readonly string[], boundHost: string) {
    const wildcard = boundHost === "0.0.0.0" || boundHost === "::";
    const bound = wildcard ? [] : [isIP(boundHost) === 6 ? `[${boundHost}]` : boundHost];
    this.#names = new Set([...loopbackNames, ...bound, ...allowed].map((name) => name.toLowerCase()));
  }

  /** The Host header names this server; a name allowed without a port is allowed on any. */
  hostAllowed(request: IncomingMessage): boolean {
    const host = request.headers.host?.toLowerCase();
    return host !== undefined && this.#knows(host);
  }

  /** An Origin, when there is one, is this server's own; without one, the browser does not say the request is foreign. */
  originAllowed(request: IncomingMessage): boolean {
    const origin = request.headers.origin;
    if (origin === undefined) return !isForeign(request.headers["sec-fetch-site"]);
    const host = originHost(origin);
    return host !== null && host === request.headers.host?.toLowerCase() && this.#knows(host);
  }

  #knows(host: string): boolean {
    return this.#names.has(host) || this.#names.has(host.replace(/:\d{1,5}$/u, ""));
  }
}

const isForeign = (site: string | string[] | undefined): boolean => site === "cross-site" || site === "same-site";

function originHost(origin: string): string | null {
  const match = /^https?:\/\/([^/?#@\s]+)$/iu.exec(origin);
  return match?.[1]?.toLowerCase() ?? null;
}
