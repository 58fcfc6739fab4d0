/**
 * One server that may move: its address is asked for with every request. Invariant: a request goes to the address of its moment; what is
 * under way at an address that is no longer its own ends with an error, as when that server had died.
 */
import { type HttpAnswer, type HttpRequest, type KeptAliveOptions, KeptAliveServer } from "./kept-alive-server.ts";

export interface MovingAddress {
  /** What it is called in messages. */
  readonly name: string;
  /** Asked often: whoever answers keeps it for a moment. @throws while it has none */
  url(): Promise<string>;
}

export class MovingServer {
  readonly #address: MovingAddress;
  readonly #options: Omit<KeptAliveOptions, "url">;
  #current: { readonly url: string; readonly server: KeptAliveServer } | null = null;

  constructor(address: MovingAddress, options: Omit<KeptAliveOptions, "url">) {
    this.#address = address;
    this.#options = options;
  }

  get shownUrl(): string {
    return this.#address.name;
  }

  /** @throws undici's errors, what the address threw, or the signal's reason */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    return this.#at(await this.#address.url()).send(request);
  }

  async close(): Promise<void> {
    await this.#current?.server.close();
    this.#current = null;
  }

  #at(url: string): KeptAliveServer {
    if (this.#current?.url === url) return this.#current.server;
    const left = this.#current?.server;
    const server = new KeptAliveServer({ ...this.#options, url });
    this.#current = { url, server };
    // Nobody waits for it: its requests hear of it themselves.
    void left?.close();
    return server;
  }
}
