/**
 * One connected client: its cursors by run, its place in the room of the run list, and the regular proof that it may still
 * be here. A revoked token does not keep its socket.
 */
import {
  type ClientToServer,
  type ServerToClient,
  Subscribe,
  type SubscribeReply,
  Unsubscribe,
} from "@rolldeck/contracts/wire/socket";
import type { Socket } from "socket.io";
import type { EventTail, ReadEvents } from "./event-tail.ts";
import { type Outlet, Subscription } from "./subscription.ts";

export type RunSocket = Socket<ClientToServer, ServerToClient>;
export const runsRoom = "runs";
const drainPollMs = 5;

export interface SessionOptions {
  readonly tail: EventTail;
  readonly readEvents: ReadEvents;
  /** May this socket's owner still be here? */
  readonly authorised: (socket: RunSocket) => Promise<boolean>;
  readonly onError: (error: unknown) => void;
  readonly reauthoriseMs?: number;
  readonly maxSubscriptions?: number;
}

export class SocketSession {
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #outlet: Outlet;
  readonly #reauthorise: ReturnType<typeof setInterval>;

  constructor(
    private readonly socket: RunSocket,
    private readonly options: SessionOptions,
  ) {
    this.#outlet = outletOf(socket);
    this.#reauthorise = setInterval(() => this.#checkOwner(), options.reauthoriseMs ?? 60_000);
    // What a client sends is a stranger's: every message is parsed, whatever its type says.
    socket.on("subscribe", (request, reply) => this.#answer(request, reply));
    socket.on("unsubscribe", (request) => this.#unsubscribe(request));
    socket.on("watch-runs", (reply) => {
      void socket.join(runsRoom);
      if (typeof reply === "function") reply({ ok: true, head: 0 });
    });
    socket.on("disconnect", () => this.#end());
  }

  #answer(request: unknown, reply: (answer: SubscribeReply) => void): void {
    if (typeof reply !== "function") return;
    this.#subscribe(request).then(reply, (error: unknown) => {
      this.options.onError(error);
      reply({ ok: false, error: "the log could not be read; trying again may help" });
    });
  }

  async #subscribe(request: unknown): Promise<SubscribeReply> {
    const parsed = Subscribe.safeParse(request);
    if (!parsed.success) return { ok: false, error: "subscribe takes {runId, after}" };
    const { runId, after } = parsed.data;
    const { tail, readEvents, onError, maxSubscriptions = 100 } = this.options;
    if (this.#subscriptions.size >= maxSubscriptions && !this.#subscriptions.has(runId))
      return { ok: false, error: "too many runs followed on one socket" };
    const page = await readEvents(runId, after, 1);
    if (!page) return { ok: false, error: "no such run" };
    if (after > page.head) return { ok: false, error: "after is past the end of this run's log" };
    if (!this.socket.connected) return { ok: false, error: "disconnected" };
    // A second subscribe replaces the first: the client says where it really is.
    this.#subscriptions.get(runId)?.stop();
    const subscription = new Subscription(tail, this.#outlet, runId, { after, head: page.head }, onError);
    this.#subscriptions.set(runId, subscription);
    // What was committed between the read above and the follow would have no notice for us.
    tail.look(runId);
    void subscription.pump();
    return { ok: true, head: page.head };
  }

  #unsubscribe(request: unknown): void {
    const parsed = Unsubscribe.safeParse(request);
    if (!parsed.success) return;
    this.#subscriptions.get(parsed.data.runId)?.stop();
    this.#subscriptions.delete(parsed.data.runId);
  }

  #checkOwner(): void {
    this.options.authorised(this.socket).then((stays) => stays || this.socket.disconnect(true), this.options.onError);
  }

  #end(): void {
    clearInterval(this.#reauthorise);
    for (const subscription of this.#subscriptions.values()) subscription.stop();
    this.#subscriptions.clear();
  }
}

/**
 * Back-pressure by the transport: it is writable again when the last message left for the network. The transport tells nobody
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
