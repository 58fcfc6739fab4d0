/** Sockets that dialled in, once their token was taken: greeting, then calls. A side that does not greet in time is cut. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { serve } from "@rolldeck/sandbox/remote/call";
import { type Header, ProtocolError, protocolVersion } from "@rolldeck/sandbox/remote/frames";
import { Link, type LinkEvents } from "@rolldeck/sandbox/remote/link";
import { isMethod } from "@rolldeck/sandbox/remote/methods";
import { Stream } from "@rolldeck/sandbox/remote/stream";
import { refused } from "@rolldeck/sandbox/remote/wire-error";
import type { WebSocket } from "ws";
import { clientMethods } from "./client-methods.ts";
import type { Gateway } from "./gateway.ts";
import type { Host } from "./host.ts";
import { isRelayed, relayCall } from "./relayed-methods.ts";

export interface ConnectionEvents {
  readonly onSaid: (message: string) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

const greetingLimitMs = 10_000;

/** Resolves when the connection ended. */
export function serveClient(gateway: Gateway, socket: WebSocket, { onTrouble }: ConnectionEvents): Promise<void> {
  return new Promise((resolve) => {
    let client: string | null = null;
    const onStream: LinkEvents["onStream"] = ({ s, method, params }, link) => {
      if (client === null) throw new ProtocolError("a call before the greeting");
      if (isRelayed(method)) return relayCall(gateway, { link, client, stream: s }, method, params);
      const stream = new Stream(link, s);
      // What names no method is any client's word: counted by it, there would be no end to the names.
      const counted = isMethod(method) ? method : "(none)";
      gateway.measures.called(counted);
      void serve(stream, method, params, clientMethods(gateway, client), (failed, error) => {
        const code = error instanceof BoundaryError ? error.code : "failed";
        if (failed === "open") gateway.measures.openFailed(code);
        else gateway.measures.failed(counted, code);
        if (!(error instanceof BoundaryError || error instanceof SandboxFileError) && !stream.over.aborted) {
          onTrouble(`${failed} failed`, error);
        }
      });
      return stream;
    };
    const link = new Link(socket, {
      onStream,
      onGreeting: (header) => {
        if (header.k !== "client-hello" || client !== null) return;
        if (!speaksOurs(link, header)) return;
        client = header.deployment;
        clearTimeout(timer);
        link.send({ k: "welcome", version: protocolVersion, gateway: gateway.name });
      },
      onEnd: () => {
        clearTimeout(timer);
        resolve();
      },
    });
    const timer = setTimeout(() => link.close("no greeting came"), greetingLimitMs);
  });
}

/** Resolves when the connection ended. */
export function serveHost(gateway: Gateway, socket: WebSocket, { onSaid }: ConnectionEvents): Promise<void> {
  return new Promise((resolve) => {
    let host: Host | null = null;
    let greeted = false;
    const link = new Link(socket, {
      onGreeting: (header) => {
        if (header.k !== "host-hello" || greeted) return;
        if (!speaksOurs(link, header)) return;
        greeted = true;
        clearTimeout(timer);
        const join = (): void => {
          if (link.ended !== null) return;
          host = gateway.fleet.join(header, link);
          link.send({ k: "welcome", version: protocolVersion, gateway: gateway.name });
          onSaid(`host ${host.name} (${header.runtime}, at most ${header.maxSandboxes}) is here`);
          void gateway.settle(host);
        };
        gateway.fleet
          .makeWay(header)
          .then(join)
          .catch((error: unknown) => link.close(error instanceof Error ? error.message : "this host can't join"));
      },
      onEnd: (error) => {
        clearTimeout(timer);
        if (host !== null) {
          gateway.fleet.left(host, link);
          onSaid(`host ${host.name} is away: ${error.message}`);
        }
        resolve();
      },
    });
    const timer = setTimeout(() => link.close("no greeting came"), greetingLimitMs);
  });
}

function speaksOurs(link: Link, header: Extract<Header, { version: number }>): boolean {
  if (header.version === protocolVersion) return true;
  const ours = refused(`this sandbox server speaks version ${protocolVersion}, not ${header.version}`);
  link.close(ours.message);
  return false;
}
