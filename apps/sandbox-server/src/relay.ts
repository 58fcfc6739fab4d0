/**
 * Joins a client's stream to one on a host: frames go through as they come, so that credit is granted by who reads and bytes wait
 * with who sends. Invariant: data beyond what the other end granted never gets through; either end that goes away ends the other.
 */
import { initialCreditBytes, ProtocolError, type StreamHeader } from "@rolldeck/sandbox/remote/frames";
import type { Link, StreamSink } from "@rolldeck/sandbox/remote/link";
import { toWire, unavailable } from "@rolldeck/sandbox/remote/wire-error";

export interface RelayOptions {
  readonly client: Link;
  readonly clientStream: number;
  readonly host: Link;
  readonly hostName: string;
  readonly method: string;
  readonly params: unknown;
  /** Of a result, before it goes on. */
  readonly onResult: (value: unknown) => unknown;
  /** Once: the code of its error, or null. */
  readonly onEnd: (failure: string | null) => void;
  readonly onBytes: (direction: "in" | "out", bytes: number) => void;
}

/** The client's end. @throws BoundaryError("sandbox", "unavailable") when the host can't be asked; ProtocolError */
export function relay(options: RelayOptions): StreamSink {
  const { client, clientStream, host, hostName } = options;
  const toHost = new Allowance();
  const toClient = new Allowance();
  let ended = false;
  const end = (failure: string | null): void => {
    ended = true;
    client.forget(clientStream);
    host.forget(hostStream);
    options.onEnd(failure);
  };
  const hostStream = host.begin({
    onFrame: (header, payload) => {
      if (header.k === "data") {
        if (header.c === 0) throw new ProtocolError("a host that sends on the caller's channel");
        options.onBytes("out", toClient.spend(header.c, payload.length));
      }
      if (header.k === "credit") toHost.grant(header.c, header.n);
      const value = header.k === "result" ? { value: options.onResult(header.value) } : {};
      client.send({ ...header, ...value, s: clientStream }, payload);
      if (header.k === "result") end(null);
      if (header.k === "error") end(header.error.code);
    },
    onLost: (error) => {
      if (ended) return;
      const away = unavailable(`host ${hostName} went away: what was under way there may or may not be done`, error);
      client.send({ k: "error", s: clientStream, error: toWire(away) });
      end("unavailable");
    },
  });
  try {
    host.send({ k: "open", s: hostStream, method: options.method, params: options.params });
  } catch (error) {
    host.forget(hostStream);
    throw error;
  }
  return {
    onFrame: (header, payload) => {
      if (!fromCaller.has(header.k)) throw new ProtocolError(`a caller that sends ${header.k}`);
      if (header.k === "data") {
        // The host would end its connection, which is that of all callers.
        if (header.c !== 0) throw new ProtocolError("a caller that sends on the host's channels");
        options.onBytes("in", toHost.spend(header.c, payload.length));
      }
      if (header.k === "credit") toClient.grant(header.c, header.n);
      host.send({ ...header, s: hostStream }, payload);
      if (header.k === "cancel") end("cancelled");
    },
    onLost: () => {
      if (ended) return;
      host.send({ k: "cancel", s: hostStream });
      end("cancelled");
    },
  };
}

const fromCaller: ReadonlySet<StreamHeader["k"]> = new Set(["data", "credit", "end", "note", "cancel"]);

/** What one end may still send on each channel. */
class Allowance {
  readonly #bytes = [initialCreditBytes, initialCreditBytes, initialCreditBytes];

  grant(channel: number, bytes: number): void {
    this.#bytes[channel] = (this.#bytes[channel] ?? 0) + bytes;
  }

  /** @returns the bytes @throws ProtocolError */
  spend(channel: number, bytes: number): number {
    const left = (this.#bytes[channel] ?? 0) - bytes;
    if (left < 0) throw new ProtocolError("more data than was granted");
    this.#bytes[channel] = left;
    return bytes;
  }
}
