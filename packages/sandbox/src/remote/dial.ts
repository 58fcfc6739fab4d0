/** Dials a gateway: WebSocket over TLS or plain HTTP, token, greeting. The result is a link that both sides agree to use. */
import type { BoundaryError } from "@rolldeck/contracts/errors";
import { WebSocket } from "ws";
import { type Header, maxFrameBytes, protocolVersion, subprotocol } from "./frames.ts";
import { Link, type LinkEvents } from "./link.ts";
import { refused, unavailable } from "./wire-error.ts";

export interface GatewayAddress {
  /** `http://…` or `https://…`; a path is kept as a prefix. */
  readonly url: string;
  readonly token: string;
  /** Certificates it is trusted by, PEM; null = the system's. */
  readonly ca: string | null;
}

const dialTimeoutMs = 10_000;

/**
 * @throws BoundaryError("sandbox", "unavailable") when it does not answer, "refused" when it does not take the token, the version
 * or this side
 */
export async function dial(
  address: GatewayAddress,
  side: "client" | "host",
  hello: Header,
  events: Pick<LinkEvents, "onStream" | "onEnd">,
  signal: AbortSignal,
): Promise<Link> {
  signal.throwIfAborted();
  const socket = new WebSocket(socketUrl(address.url, side), [subprotocol], {
    headers: { authorization: `Bearer ${address.token}` },
    handshakeTimeout: dialTimeoutMs,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    ...(address.ca === null ? {} : { ca: address.ca }),
  });
  try {
    await opened(socket, address.url, signal);
    return await greeted(socket, hello, events, signal);
  } catch (error) {
    socket.on("error", () => undefined);
    socket.terminate();
    throw error;
  }
}

function socketUrl(url: string, side: "client" | "host"): URL {
  const target = new URL(url);
  target.protocol = target.protocol === "https:" ? "wss:" : "ws:";
  target.pathname = `${target.pathname.replace(/\/+$/, "")}/v1/${side}`;
  return target;
}

function opened(socket: WebSocket, url: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const settle = (error?: Error): void => {
      signal.removeEventListener("abort", onAbort);
      if (error === undefined) resolve();
      else reject(error);
    };
    socket.once("open", () => settle());
    socket.once("error", (error) => settle(unavailable(`sandbox server ${url}: ${error.message}`, error)));
    socket.once("unexpected-response", (_request, response) => {
      response.resume();
      settle(rejection(url, response.statusCode ?? 0));
    });
  });
}

function rejection(url: string, status: number): BoundaryError {
  if (status === 401 || status === 403) return refused(`sandbox server ${url} does not take the token`);
  if (status >= 500 || status === 429) return unavailable(`sandbox server ${url} answered ${status}`);
  return refused(`${url} is no sandbox server of this version: it answered ${status}`);
}

function greeted(
  socket: WebSocket,
  hello: Header,
  events: Pick<LinkEvents, "onStream" | "onEnd">,
  signal: AbortSignal,
): Promise<Link> {
  return new Promise((resolve, reject) => {
    let welcomed = false;
    let farewell: string | null = null;
    const timer = setTimeout(() => reject(unavailable("sandbox server does not greet")), dialTimeoutMs);
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const link = new Link(socket, {
      onStream: events.onStream,
      onGreeting: (header) => {
        if (header.k === "bye") farewell = header.reason;
        if (header.k !== "welcome" || welcomed) return;
        welcomed = true;
        settle();
        if (header.version === protocolVersion) resolve(link);
        else reject(refused(`sandbox server speaks version ${header.version}, this side ${protocolVersion}`));
      },
      onEnd: (error) => {
        settle();
        if (welcomed) events.onEnd(error);
        else reject(farewell === null ? error : refused(`sandbox server: ${farewell}`));
      },
    });
    link.send(hello);
  });
}
