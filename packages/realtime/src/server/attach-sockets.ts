/**
 * The socket end of live updates: subscribe from any `seq`, exact catch-up, then live; `runs-changed` for the run list.
 *
 * Every api process tails the log by itself, so a client may reconnect to any of them: there are no rooms to share and no
 * cross-process adapter (docs/decisions/0003-live-updates.md). A handshake is authorised before anything is answered, and
 * again every `reauthoriseMs`: a revoked token does not keep its socket.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import {
  type ClientToServer,
  type ServerToClient,
  Subscribe,
  type SubscribeReply,
  socketPath,
  Unsubscribe,
} from "@rolldeck/contracts/wire/socket";
import { Server, type Socket } from "socket.io";
import { EventTail, type ReadEvents } from "./event-tail.ts";
import { type EventListener, listenEvents } from "./listen-events.ts";
import { type Outlet, Subscription } from "./subscription.ts";

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
  readonly maxSubscriptions?: number;
}

export interface Sockets {
  handleRequest(request: IncomingMessage, response: ServerResponse): void;
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Clients connected now. */
  count(): number;
  /** Resolves when the run may have an event after `after`, or the time is over: the long poll of those without a socket. */
  readonly waitForEvents: (runId: string, after: number, waitMs: number) => Promise<void>;
  /** Resolves after LISTEN is first in force. */
  readonly listening: Promise<void>;
  close(): Promise<void>;
}

type RunSocket = Socket<ClientToServer, ServerToClient>;
const runsRoom = "runs";
const runsCoalesceMs = 250;
const drainPollMs = 5;

export function attachSockets(options: AttachOptions): Sockets {
  // Bound to a server that never listens: the api's own server decides by path who gets a request or an upgrade.
  const io = new Server<ClientToServer, ServerToClient>(createServer(), {
    path: socketPath,
    serveClient: false,
    pingInterval: 5_000,
    pingTimeout: 10_000,
    maxHttpBufferSize: 64 * 1024,
    connectTimeout: 10_000,
    allowRequest: (request, callback) => callback(null, options.allowRequest(request)),
  });
  const tail = new EventTail(options);
  const changed = new ChangedRuns((runIds) => io.to(runsRoom).emit("runs-changed", { runIds }));
  let markListening = () => {};
  const listening = new Promise<void>((resolve) => {
    markListening = resolve;
  });
  const listener: EventListener = listenEvents({
    connectionString: options.connectionString,
    onEvents: (runId, seq) => {
      tail.noticed(runId, seq);
      changed.add(runId);
    },
    onListening: () => {
      markListening();
      tail.lookAgain();
    },
    onError: options.onError,
  });
  const sweep = setInterval(() => tail.lookAgain(), options.sweepMs ?? 3_000);

  io.use((socket, next) => {
    authorised(socket, options).then(
      (yes) => next(yes ? undefined : new Error("not signed in")),
      (error: unknown) => {
        options.onError(error);
        next(new Error("sign-in could not be checked"));
      },
    );
  });
  io.on("connection", (socket) => serveSocket(socket, tail, options));

  return {
    handleRequest: (request, response) => void io.engine.handleRequest(withQuery(request), response),
    handleUpgrade: (request, socket, head) => void io.engine.handleUpgrade(withQuery(request), socket, head),
    count: () => io.engine.clientsCount,
    waitForEvents: (runId, after, waitMs) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          leave();
          resolve();
        };
        const timer = setTimeout(done, waitMs);
        const leave = tail.follow(runId, after, () => tail.headOf(runId) > after && done());
        // Another follower may have brought the tail past `after` already; then nothing would wake this one.
        if (tail.headOf(runId) > after) done();
        else tail.look(runId);
      }),
    listening,
    async close() {
      clearInterval(sweep);
      changed.close();
      await Promise.all([listener.close(), io.close()]);
    },
  };
}

/** The transport server reads its parameters from here; parsing them ourselves keeps a hostile URL from throwing there. */
const withQuery = (request: IncomingMessage) =>
  Object.assign(request, {
    _query: Object.fromEntries(new URLSearchParams((request.url ?? "").split("?").slice(1).join("?"))),
  });

const tokenOf = (socket: RunSocket): string | null => {
  const token: unknown = socket.handshake.auth.token;
  return typeof token === "string" ? token : null;
};
const authorised = (socket: RunSocket, options: AttachOptions): Promise<boolean> =>
  options.authorise(socket.request, tokenOf(socket));

function serveSocket(socket: RunSocket, tail: EventTail, options: AttachOptions): void {
  const subscriptions = new Map<string, Subscription>();
  const outlet = outletOf(socket);
  const reauthorise = setInterval(() => {
    authorised(socket, options).then((yes) => yes || socket.disconnect(true), options.onError);
  }, options.reauthoriseMs ?? 60_000);

  socket.on("subscribe", (request, reply) => {
    if (typeof reply !== "function") return;
    subscribe(request).then(reply, (error: unknown) => {
      options.onError(error);
      reply({ ok: false, error: "the log could not be read; trying again may help" });
    });
  });
  socket.on("unsubscribe", (request) => {
    const parsed = Unsubscribe.safeParse(request);
    if (!parsed.success) return;
    subscriptions.get(parsed.data.runId)?.stop();
    subscriptions.delete(parsed.data.runId);
  });
  socket.on("watch-runs", (reply) => {
    void socket.join(runsRoom);
    if (typeof reply === "function") reply({ ok: true, head: 0 });
  });
  socket.on("disconnect", () => {
    clearInterval(reauthorise);
    for (const subscription of subscriptions.values()) subscription.stop();
    subscriptions.clear();
  });

  async function subscribe(request: unknown): Promise<SubscribeReply> {
    const parsed = Subscribe.safeParse(request);
    if (!parsed.success) return { ok: false, error: "subscribe takes {runId, after}" };
    const { runId, after } = parsed.data;
    if (subscriptions.size >= (options.maxSubscriptions ?? 100) && !subscriptions.has(runId))
      return { ok: false, error: "too many runs followed on one socket" };
    const page = await options.readEvents(runId, after, 1);
    if (!page) return { ok: false, error: "no such run" };
    if (after > page.head) return { ok: false, error: "after is past the end of this run's log" };
    if (!socket.connected) return { ok: false, error: "disconnected" };
    // A second subscribe replaces the first: the client says where it really is.
    subscriptions.get(runId)?.stop();
    const subscription = new Subscription(tail, outlet, runId, { after, head: page.head }, options.onError);
    subscriptions.set(runId, subscription);
    // What was committed between the read above and the follow would have no notice for us.
    tail.look(runId);
    void subscription.pump();
    return { ok: true, head: page.head };
  }
}

/**
 * Back-pressure by the transport: it is writable again when the last message left for the network. engine.io tells nobody
 * when that happens with an empty buffer, so a waiting cursor looks every few milliseconds.
 */
function outletOf(socket: RunSocket): Outlet {
  return {
    ready: () => !socket.connected || socket.conn.transport.writable,
    drained: () => new Promise((resolve) => setTimeout(resolve, drainPollMs)),
    send: (message) => {
      socket.emit("events", message);
    },
  };
}

/** Ids of changed runs, told at most every 250 ms. */
class ChangedRuns {
  readonly #ids = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  constructor(private readonly tell: (runIds: string[]) => void) {}
  add(runId: string): void {
    this.#ids.add(runId);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.tell([...this.#ids]);
      this.#ids.clear();
    }, runsCoalesceMs);
  }
  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }
}
