/**
 * The socket end of live updates: subscribe from any `seq`, exact catch-up, then live; `runs-changed` for the run list.
 *
 * Every api process tails the log by itself, so a client may reconnect to any of them: there is no room to share and no
 * cross-process adapter (docs/decisions/0003-live-updates.md). A handshake is authorised before anything is answered, and
 * again every `reauthoriseMs`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type ClientToServer, type ServerToClient, socketPath } from "@rolldeck/contracts/wire/socket";
import { Server } from "socket.io";
import { type AttachShellsOptions, attachShells } from "./attach-shells.ts";
import { ChangedRuns } from "./changed-runs.ts";
import { EventTail, type ReadEvents } from "./event-tail.ts";
import { listenEvents } from "./listen-events.ts";
import { type RunSocket, runsRoom, SocketSession } from "./socket-session.ts";

export interface AttachOptions {
  readonly connectionString: string;
  readonly readEvents: ReadEvents;
  /** Host and Origin of the handshake; a refused one gets 403 before any socket exists. */
  readonly allowRequest: (request: IncomingMessage) => boolean;
  /** Who connects, from headers or `handshake.auth.token`; false refuses. */
  readonly authorise: (request: IncomingMessage, token: string | null) => Promise<boolean>;
  readonly onError: (error: unknown) => void;
  readonly coalesceMs?: number;
  /** Look at every followed run this often even without a notice, ms. */
  readonly sweepMs?: number;
  readonly reauthoriseMs?: number;
  /** Who opens shells in sandboxes, and how many; absent: nobody can. */
  readonly shells?: Pick<AttachShellsOptions, "host" | "limits">;
}

export interface Sockets {
  handleRequest(request: IncomingMessage, response: ServerResponse): void;
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Clients connected now. */
  count(): number;
  /** Resolves when the run may have an event after `after`, or the time is over: the long poll of those without a socket. */
  readonly waitForEvents: (runId: string, after: number, waitMs: number) => Promise<void>;
  close(): Promise<void>;
}

export function attachSockets(options: AttachOptions): Sockets {
  const io = openServer(options);
  const tail = new EventTail(options);
  const changed = new ChangedRuns((runIds) => io.to(runsRoom).emit("runs-changed", { runIds }));
  const listener = listenEvents({
    connectionString: options.connectionString,
    onEvents: (runId, seq) => {
      tail.noticed(runId, seq);
      changed.add(runId);
    },
    onListening: () => tail.lookAgain(),
    onError: options.onError,
  });
  const sweep = setInterval(() => tail.lookAgain(), options.sweepMs ?? 3_000);
  const { readEvents, onError, reauthoriseMs, shells } = options;
  const authorised = (socket: RunSocket) => options.authorise(socket.request, tokenOf(socket));
  io.use((socket, next) => admit(authorised(socket), next, onError));
  io.on("connection", (socket) => new SocketSession(socket, { tail, readEvents, authorised, onError, reauthoriseMs }));
  const caller = (socket: Pick<RunSocket, "request" | "handshake">) => ({
    request: socket.request,
    token: tokenOf(socket),
  });
  const endShells = shells ? attachShells(io, { ...shells, caller, onError }) : async () => undefined;

  return {
    handleRequest: (request, response) => void io.engine.handleRequest(withQuery(request), response),
    handleUpgrade: (request, socket, head) => void io.engine.handleUpgrade(withQuery(request), socket, head),
    count: () => io.engine.clientsCount,
    waitForEvents: (runId, after, waitMs) => tail.waitFor(runId, after, waitMs),
    async close() {
      clearInterval(sweep);
      changed.close();
      await endShells();
      await Promise.all([listener.close(), io.close()]);
    },
  };
}

/** Bound to a server that never listens: the api's own server decides by path who gets a request or an upgrade. */
const openServer = (options: AttachOptions): Server<ClientToServer, ServerToClient> =>
  new Server(createServer(), {
    path: socketPath,
    serveClient: false,
    // Twice this without a word and the client knows that it is cut off.
    pingInterval: 5_000,
    pingTimeout: 10_000,
    maxHttpBufferSize: 64 * 1024,
    connectTimeout: 10_000,
    allowRequest: (request, callback) => callback(null, options.allowRequest(request)),
  });

/** The transport server reads its parameters from here; parsing them ourselves keeps a hostile URL from throwing there. */
const withQuery = (request: IncomingMessage) =>
  Object.assign(request, {
    _query: Object.fromEntries(new URLSearchParams((request.url ?? "").split("?").slice(1).join("?"))),
  });

function tokenOf(socket: Pick<RunSocket, "handshake">): string | null {
  const token: unknown = socket.handshake.auth.token;
  return typeof token === "string" ? token : null;
}

function admit(authorised: Promise<boolean>, next: (error?: Error) => void, onError: (error: unknown) => void): void {
  authorised.then(
    (yes) => next(yes ? undefined : new Error("not signed in")),
    (error: unknown) => {
      onError(error);
      next(new Error("sign-in could not be checked"));
    },
  );
}
