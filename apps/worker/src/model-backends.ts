/** One connection per model server of this process, opened on first use. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { StepBackend } from "@rolldeck/contracts/ports/backend";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { ModelBackends } from "./worker-context.ts";

export type ConnectBackend = (server: { readonly url: string; readonly apiKey: string | null }) => StepBackend;

/** The server that a config with `endpoint: null` means; its key is sent nowhere else. */
export interface SupervisedServer {
  readonly url: string;
  readonly apiKey: string;
}

export class OpenedBackends implements ModelBackends {
  readonly #supervised: SupervisedServer | null;
  readonly #connect: ConnectBackend;
  readonly #open = new Map<string, StepBackend>();

  constructor(supervised: SupervisedServer | null, connect: ConnectBackend) {
    this.#supervised = supervised;
    this.#connect = connect;
  }

  knows(backend: RunConfig["backend"]): boolean {
    return this.urlOf(backend) !== null;
  }

  urlOf(backend: RunConfig["backend"]): string | null {
    return backend.endpoint ?? this.#supervised?.url ?? null;
  }

  of(backend: RunConfig["backend"]): StepBackend {
    const url = this.urlOf(backend);
    if (url === null) {
      throw new BoundaryError("model-server", "no_address", "this worker knows no address of a model server");
    }
    const known = this.#open.get(url);
    if (known !== undefined) return known;
    const apiKey = url === this.#supervised?.url ? this.#supervised.apiKey : null;
    const opened = this.#connect({ url, apiKey });
    this.#open.set(url, opened);
    return opened;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((backend) => backend.close()));
    this.#open.clear();
  }
}
