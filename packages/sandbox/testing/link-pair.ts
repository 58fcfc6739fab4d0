/** Two ends of one real WebSocket connection, of which one opens streams and the other serves them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import { Link, type LinkEvents } from "../src/remote/link.ts";

export interface LinkPair {
  readonly caller: Link;
  readonly server: Link;
  /** The caller's socket, for what no link would send. */
  readonly raw: WebSocket;
  /** Ends both. */
  close(): void;
}

export async function linkPair(
  onStream: NonNullable<LinkEvents["onStream"]>,
  onEnd: (side: "caller" | "server", error: Error) => void = () => undefined,
): Promise<LinkPair> {
  const http = createServer();
  const sockets = new WebSocketServer({ server: http });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const accepted = new Promise<WebSocket>((resolve) => sockets.once("connection", resolve));
  const raw = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`);
  await new Promise((resolve) => raw.once("open", resolve));
  const events = (side: "caller" | "server"): LinkEvents => ({
    onGreeting: () => undefined,
    onEnd: (error) => onEnd(side, error),
  });
  const caller = new Link(raw, events("caller"));
  const server = new Link(await accepted, { ...events("server"), onStream });
  return {
    caller,
    server,
    raw,
    close: () => {
      raw.terminate();
      sockets.close();
      http.close();
      http.closeAllConnections();
    },
  };
}
