/**
 * One connection per model server of this process, opened on first use. A config names a server by address, by its name in the
 * operator's list, or not at all (the supervised one). Keys are the operator's and go to the addresses they are listed with only.
 */
import type { BackendWire } from "@rolldeck/backends/capabilities";
import { bareEndpoint, type Endpoint, type EndpointKind, endpointKinds } from "@rolldeck/backends/openai/endpoint";
import { findBackend } from "@rolldeck/backends/registry";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { ModelBackends } from "./worker-context.ts";

export interface BackendConnectors {
  tinker(server: {
    readonly url: string;
    readonly apiKey: string | null;
    readonly dialect: Extract<BackendWire, { kind: "tinker" }>["dialect"];
  }): StepBackend;
  /** A server that samples only. */
  sampling(endpoint: Endpoint): StepBackend;
}

/** The server that a config without address and name means; its key is sent nowhere else. */
export interface SupervisedServer {
  readonly url: string;
  readonly apiKey: string;
}
type BackendConfig = RunConfig["backend"];

export class OpenedBackends implements ModelBackends {
  readonly #supervised: Endpoint | null;
  readonly #endpoints: readonly Endpoint[];
  readonly #connect: BackendConnectors;
  readonly #open = new Map<string, StepBackend>();

  constructor(supervised: SupervisedServer | null, endpoints: readonly Endpoint[], connect: BackendConnectors) {
    this.#supervised =
      supervised === null ? null : { ...bareEndpoint("gpu-worker", supervised.url), keys: [supervised.apiKey] };
    this.#endpoints = endpoints;
    this.#connect = connect;
  }

  knows(backend: BackendConfig): boolean {
    return this.#find(backend) !== null;
  }

  /** Without user and password. */
  urlOf(backend: BackendConfig): string | null {
    const listed = this.#find(backend)?.urls[0];
    if (listed === undefined) return null;
    const url = new URL(listed);
    if (url.username === "" && url.password === "") return listed;
    url.username = "";
    url.password = "";
    return url.toString();
  }

  of(backend: BackendConfig): StepBackend {
    const endpoint = this.#find(backend);
    if (endpoint === null) throw unknownServer(backend);
    // The wire is the config's word: one address may be spoken to in two ways.
    const key = JSON.stringify([backend.name, endpoint.name, endpoint.urls]);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const opened = this.#openOne(backend, endpoint);
    this.#open.set(key, opened);
    return opened;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((backend) => backend.close()));
    this.#open.clear();
  }

  #find({ name, server, endpoint: address }: BackendConfig): Endpoint | null {
    if (server !== null) return this.#endpoints.find((listed) => listed.name === server) ?? null;
    if (address === null) return this.#supervised;
    if (this.#supervised?.urls.some((url) => sameUrl(url, address))) return this.#supervised;
    const listed = this.#endpoints.find(({ kind, urls }) => kind === name && urls.some((url) => sameUrl(url, address)));
    // Only this address of it: the config asked for one.
    if (listed) return { ...listed, urls: listed.urls.filter((url) => sameUrl(url, address)) };
    return bareEndpoint(kindOf(name), address);
  }

  #openOne(backend: BackendConfig, endpoint: Endpoint): StepBackend {
    const wire = findBackend(backend.name)?.wire;
    if (wire === undefined) throw new BoundaryError("model-server", "unknown_backend", `no backend ${backend.name}`);
    if (endpoint.kind !== backend.name && endpoint !== this.#supervised) {
      const message = `server ${endpoint.name} is listed as ${endpoint.kind}, the config asks for ${backend.name}`;
      throw new BoundaryError("model-server", "wrong_kind", message);
    }
    if (wire.kind === "sampling") return this.#connect.sampling(endpoint);
    const [url = ""] = endpoint.urls;
    return this.#connect.tinker({ url, apiKey: endpoint.keys[0] ?? null, dialect: wire.dialect });
  }
}

const kindOf = (name: string): EndpointKind => endpointKinds.find((kind) => kind === name) ?? "gpu-worker";

const sameUrl = (one: string, other: string): boolean => plain(one) === plain(other);
function plain(address: string): string {
  const url = new URL(address);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function unknownServer({ server }: BackendConfig): BoundaryError {
  if (server === null) {
    return new BoundaryError("model-server", "no_address", "this worker knows no address of a model server");
  }
  return new BoundaryError(
    "model-server",
    "unknown_server",
    `no server "${server}" in the operator's list of endpoints`,
  );
}
