/**
 * One connection per model server of this process, opened on first use. A config names a server by address, by its name in the
 * operator's list, or not at all (the supervised one); or its run has workers of the fleet. Keys are the operator's and go to the
 * addresses they are listed with only.
 */
import { bareEndpoint, type Endpoint, type EndpointKind, endpointKinds } from "@rolldeck/backends/openai/endpoint";
import { findBackend } from "@rolldeck/backends/registry";
import type { TinkerDialectName } from "@rolldeck/backends/tinker/dialects";
import type { BackendConfig } from "@rolldeck/contracts/backend-config";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import type { ModelOf } from "@rolldeck/db/gpu-workers";
import type { FleetBackends } from "./fleet/fleet-backends.ts";
import type { ModelBackends } from "./worker-context.ts";

export interface BackendConnectors {
  tinker(server: {
    readonly url: string;
    readonly apiKey: string | null;
    readonly dialect: TinkerDialectName;
    /** What the server calls the model; null = the run's name for it. */
    readonly model: string | null;
  }): StepBackend;
  /** A server that samples only. */
  sampling(endpoint: Endpoint): StepBackend;
}

/** The server that a config without address and name means; its key is sent nowhere else. */
export interface SupervisedServer {
  readonly url: string;
  readonly apiKey: string;
}
type Run = ModelOf<BackendConfig>;

export interface OtherServers {
  /** Those of trainers that are launched with runs, under the trainers' names. */
  readonly engines?: readonly Endpoint[];
  /** Null: this process has not the secret of its workers. */
  readonly fleet?: FleetBackends | null;
}

export class OpenedBackends implements ModelBackends {
  readonly #supervised: Endpoint | null;
  readonly #endpoints: readonly Endpoint[];
  readonly #connect: BackendConnectors;
  readonly #engines: readonly Endpoint[];
  readonly #fleet: FleetBackends | null;
  readonly #open = new Map<string, StepBackend>();

  constructor(
    supervised: SupervisedServer | null,
    endpoints: readonly Endpoint[],
    connect: BackendConnectors,
    { engines = [], fleet = null }: OtherServers = {},
  ) {
    this.#fleet = fleet;
    this.#supervised =
      supervised === null ? null : { ...bareEndpoint("gpu-worker", supervised.url), keys: [supervised.apiKey] };
    this.#endpoints = endpoints;
    this.#connect = connect;
    this.#engines = engines;
  }

  knows({ config: { backend } }: Run): boolean {
    return backend.fleet === null ? this.#find(backend) !== null : this.#fleet !== null;
  }

  /** Without user and password. */
  urlOf({ config: { backend } }: Run): string | null {
    const listed = backend.fleet === null ? this.#find(backend)?.urls[0] : undefined;
    if (listed === undefined) return null;
    const url = new URL(listed);
    if (url.username === "" && url.password === "") return listed;
    url.username = "";
    url.password = "";
    return url.toString();
  }

  of({ runId, config: { backend } }: Run): StepBackend {
    if (backend.fleet !== null) {
      if (this.#fleet === null) throw noFleet();
      return this.#fleet.of(runId, backend.fleet);
    }
    const endpoint = this.#find(backend);
    if (endpoint === null) throw unknownServer(backend);
    // The wire is the config's word: one address may be spoken to in two ways.
    const key = JSON.stringify([backend.name, backend.dialect, endpoint.name, endpoint.urls]);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const opened = this.#openOne(backend, endpoint);
    this.#open.set(key, opened);
    return opened;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((backend) => backend.close()));
    this.#open.clear();
    await this.#fleet?.close();
  }

  #find({ name, server, endpoint: address }: BackendConfig): Endpoint | null {
    const wire = findBackend(name)?.wire;
    const listed = wire?.kind === "sampling" && wire.launched ? this.#engines : this.#endpoints;
    if (server !== null) return listed.find((each) => each.name === server) ?? null;
    if (address === null) return this.#supervised;
    if (this.#supervised?.urls.some((url) => sameUrl(url, address))) return this.#supervised;
    const known = this.#endpoints.find(({ kind, urls }) => kind === name && urls.some((url) => sameUrl(url, address)));
    // Only this address of it: the config asked for one.
    if (known) return { ...known, urls: known.urls.filter((url) => sameUrl(url, address)) };
    return bareEndpoint(kindOf(name), address);
  }

  #openOne(backend: BackendConfig, endpoint: Endpoint): StepBackend {
    const wire = findBackend(backend.name)?.wire;
    if (wire === undefined) throw new BoundaryError("model-server", "unknown_backend", `no backend ${backend.name}`);
    const kind = wire.kind === "sampling" ? wire.endpoint : backend.name;
    if (endpoint.kind !== kind && endpoint !== this.#supervised) {
      const message = `server ${endpoint.name} is listed as ${endpoint.kind}, the config asks for ${backend.name}`;
      throw new BoundaryError("model-server", "wrong_kind", message);
    }
    if (wire.kind === "sampling") return this.#connect.sampling(endpoint);
    const [url = ""] = endpoint.urls;
    const dialect = wire.dialect === "by-config" ? backend.dialect : wire.dialect;
    if (dialect === null) {
      const message = `backend ${backend.name} needs backend.dialect: which server it is`;
      throw new BoundaryError("model-server", "unknown_backend", message);
    }
    return this.#connect.tinker({ url, apiKey: endpoint.keys[0] ?? null, dialect, model: endpoint.model });
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

const noFleet = (): BoundaryError =>
  new BoundaryError("model-server", "no_fleet", "this worker was not given ROLLDECK_FLEET_SECRET: npm start does that");
