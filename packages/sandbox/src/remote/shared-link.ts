/**
 * The one connection of a client to its gateway: made when it is needed, made again after it ended. Invariant: only calls that were
 * never sent, or that may run twice without harm, are sent on a second connection.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { begin, type Call, call } from "./call.ts";
import { dial, type GatewayAddress } from "./dial.ts";
import { type Header, protocolVersion } from "./frames.ts";
import type { Link } from "./link.ts";
import type { Method, Params, Result } from "./methods.ts";
import { unavailable } from "./wire-error.ts";

/** How long a call waits for a gateway that is away. */
const patienceMs = 10_000;

export class SharedLink {
  readonly #address: () => Promise<GatewayAddress>;
  readonly #hello: Header;
  readonly #closing = new AbortController();
  #link: Promise<Link> | null = null;

  constructor(address: () => Promise<GatewayAddress>, deployment: string) {
    this.#address = address;
    this.#hello = { k: "client-hello", version: protocolVersion, deployment };
  }

  /** Begins a call on a connection that stands. Waits for one, but sends once. */
  async begin<M extends Method>(method: M, params: Params<M>, signal: AbortSignal): Promise<Call<M>> {
    return begin(await this.#standing(signal), method, params, signal);
  }

  async call<M extends Method>(method: M, params: Params<M>, signal: AbortSignal): Promise<Result<M>> {
    return await (await this.begin(method, params, signal)).result;
  }

  /** For methods that may run twice without harm: sent again when the connection ended before the answer. */
  async callAgain<M extends Method>(method: M, params: Params<M>, signal: AbortSignal): Promise<Result<M>> {
    return await this.again((link) => call(link, method, params, signal), signal);
  }

  /** The same for work of more than one frame. */
  async again<T>(work: (link: Link) => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const link = await this.#standing(signal);
      try {
        return await work(link);
      } catch (error) {
        if (link.ended === null || tries >= 3) throw error;
      }
    }
  }

  /** Ends the connection; a later call is refused. */
  async close(): Promise<void> {
    this.#closing.abort(unavailable("disconnected"));
    const link = this.#link;
    this.#link = null;
    if (link === null) return;
    await link.then(
      (open) => open.close("the client is done"),
      () => undefined,
    );
  }

  /** One that had ended before anything was sent on it is no try: another is dialled. */
  async #standing(signal: AbortSignal): Promise<Link> {
    for (let tries = 1; ; tries += 1) {
      const link = await this.#connected(signal);
      if (link.ended === null || tries >= 3) return link;
    }
  }

  async #connected(signal: AbortSignal): Promise<Link> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    this.#link ??= this.#connect();
    const standing = this.#link;
    return await new Promise<Link>((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      standing.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /** Shared by all who wait; forgotten when it fails or ends, so that the next call tries anew. */
  #connect(): Promise<Link> {
    const forget = (): void => {
      if (this.#link === made) this.#link = null;
    };
    const made: Promise<Link> = this.#dialPatiently(forget);
    made.catch(forget);
    return made;
  }

  async #dialPatiently(onEnd: () => void): Promise<Link> {
    const startedAt = performance.now();
    const address = await this.#address();
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2000)) {
      try {
        return await dial(address, "client", this.#hello, { onEnd }, this.#closing.signal);
      } catch (error) {
        const mayCome = error instanceof BoundaryError && error.code === "unavailable";
        if (!mayCome || performance.now() - startedAt + waitMs > patienceMs) throw error;
        await sleep(waitMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
        this.#closing.signal.throwIfAborted();
      }
    }
  }
}
