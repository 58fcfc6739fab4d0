/**
 * Reads `/metrics` of an endpoint's servers. Servers that have no such route, or none of an engine we know, are left alone for a
 * while; one that does not answer counts for nothing this time.
 */
import type { EngineReading } from "@rolldeck/contracts/ports/backend";
import { type Endpoint, rootUrl } from "./endpoint.ts";
import { type EndpointTarget, endpointTargets } from "./endpoint-target.ts";
import { engineReading, readingOfAll } from "./engine-reading.ts";

const askAgainMs = 60_000;

export class EngineMetrics {
  readonly #targets: readonly EndpointTarget[];
  readonly #now: () => number;
  readonly #notBefore = new Map<string, number>();

  /** @param now milliseconds of a monotonic clock */
  constructor(endpoint: Endpoint, now: () => number) {
    // An engine's load is the same whoever asks.
    this.#targets = endpointTargets({ ...endpoint, keys: endpoint.keys.slice(0, 1) }, rootUrl);
    this.#now = now;
  }

  /** Null while no server tells. Never fails but by the signal. */
  async read(signal?: AbortSignal): Promise<EngineReading | null> {
    const readings = await Promise.all(this.#targets.map((target) => this.#readOne(target, signal)));
    return readingOfAll(readings.filter((reading) => reading !== null));
  }

  async close(): Promise<void> {
    await Promise.all(this.#targets.map(({ server }) => server.close()));
  }

  async #readOne(target: EndpointTarget, signal: AbortSignal | undefined): Promise<EngineReading | null> {
    if (this.#now() < (this.#notBefore.get(target.name) ?? 0)) return null;
    try {
      const headers = { accept: "text/plain; version=0.0.4" };
      const { status, body } = await target.server.send({ method: "GET", path: "/metrics", headers, signal });
      const text = await body.text();
      // A server in trouble may have it again in a moment.
      if (status >= 500) return null;
      const reading = status === 200 ? engineReading(text) : null;
      if (reading === null) this.#notBefore.set(target.name, this.#now() + askAgainMs);
      return reading;
    } catch {
      // Whether it is there at all is asked and told elsewhere.
      signal?.throwIfAborted();
      return null;
    }
  }
}
