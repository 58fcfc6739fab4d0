/** The places an endpoint's requests can go: each address with each key. */
import { KeptAliveServer } from "../http/kept-alive-server.ts";
import { ResilientCalls } from "../resilient/resilient-calls.ts";
import type { Endpoint } from "./endpoint.ts";

export interface EndpointTarget {
  /** The address, with the key's number where there are several. */
  readonly name: string;
  readonly url: string;
  readonly key: string | null;
  readonly server: KeptAliveServer;
}

const breaker = { threshold: 5, openMs: 1_000, maxOpenMs: 15_000 };

/** @param address from a listed address to the one requests go under */
export function endpointTargets(
  endpoint: Endpoint,
  address: (url: string) => string,
): readonly [EndpointTarget, ...EndpointTarget[]] {
  const keys = endpoint.keys.length === 0 ? [null] : endpoint.keys;
  const all = endpoint.urls.flatMap((listed) =>
    keys.map((key, index): EndpointTarget => {
      const url = address(listed);
      const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
      const server = new KeptAliveServer({ url, headers, maxConnections: endpoint.maxConnections });
      const name = keys.length === 1 ? server.shownUrl : `${server.shownUrl} (key ${index + 1})`;
      return { name, url, key, server };
    }),
  );
  const [first, ...others] = all;
  if (first === undefined) throw new RangeError("an endpoint without an address");
  return [first, ...others];
}

/** This layer waits as long as its policy says; whoever calls does not wait on top of that. */
export const endpointCalls = (
  endpoint: Endpoint,
  targets: readonly [EndpointTarget, ...EndpointTarget[]],
): ResilientCalls<EndpointTarget> =>
  new ResilientCalls({
    targets,
    policy: {
      maxTries: endpoint.maxTries,
      tryMs: endpoint.tryTimeoutMs,
      totalMs: endpoint.totalTimeoutMs,
      outageMs: null,
      firstPauseMs: endpoint.firstPauseMs,
      maxPauseMs: 30_000,
      maxRetryAfterMs: endpoint.maxRetryAfterMs,
    },
    breaker,
    retryableAfter: false,
  });

/** What must not be repeated to anybody: keys, and the passwords in addresses. */
export function endpointSecrets({ keys, urls }: Endpoint): string[] {
  const passwords = urls.map((url) => new URL(url)).flatMap(({ password }) => [password, decodeURIComponent(password)]);
  return [...keys, ...passwords].filter((secret) => secret !== "");
}
