/**
 * Follows one run's event log over a LiveConnection.
 *
 * Invariant: `onEvents` sees every event after `after` exactly once, in order of `seq`, whatever is cut, restarted or sent
 * twice. A message that does not continue at `cursor + 1` is never applied: what is older is dropped, and a gap asks the
 * server again for everything after `cursor`.
 */
import type { RunEvent } from "@rolldeck/contracts/events";
import type { EventsMessage, SubscribeReply } from "@rolldeck/contracts/wire/socket";
import type { LiveConnection } from "./live-connection.ts";

export interface LiveRunOptions {
  readonly runId: string;
  /** Last `seq` already known (`RunDetail.head`, or 0 for the whole log). */
  readonly after: number;
  /** Consecutive events, first is `cursor + 1`; at most 500 at once. */
  readonly onEvents: (events: readonly RunEvent[], head: number) => void;
  /** Ask again when the server does not answer a subscribe within this time. */
  readonly answerTimeoutMs?: number;
}

export interface LiveRunState {
  readonly connected: boolean;
  /** Cut off, refused, or events are known to exist that have not come yet. The page must say so. */
  readonly stale: boolean;
  /** Last `seq` handed to `onEvents`. */
  readonly cursor: number;
  /** Newest `seq` known to exist. */
  readonly head: number;
  /** When the server was last heard, client's clock, ms; null before the first time. */
  readonly lastMessageAt: number | null;
  /** The server's refusal (run gone, signed out); null when all is well. */
  readonly error: string | null;
}

export class LiveRun {
  readonly #connection: LiveConnection;
  readonly #options: LiveRunOptions;
  readonly #listeners = new Set<() => void>();
  readonly #leave: (() => void)[] = [];
  #state: LiveRunState;
  #subscribed = false;
  #asking = false;
  #stopped = false;
  #retry: ReturnType<typeof setTimeout> | null = null;

  constructor(connection: LiveConnection, options: LiveRunOptions) {
    this.#connection = connection;
    this.#options = options;
    const { connected, lastMessageAt } = connection.getState();
    this.#state = { connected, stale: true, cursor: options.after, head: options.after, lastMessageAt, error: null };
    const socket = connection.socket;
    const onConnect = () => this.#ask();
    const onDisconnect = () => this.#cutOff();
    const onMessage = (message: EventsMessage) => this.#take(message);
    socket.on("connect", onConnect);
    socket.on("disconnect", onDisconnect);
    socket.on("events", onMessage);
    this.#leave.push(
      () => socket.off("connect", onConnect),
      () => socket.off("disconnect", onDisconnect),
      () => socket.off("events", onMessage),
      connection.subscribe(() => this.#refresh({})),
    );
    connection.addFollower(options.runId);
    if (socket.connected) this.#ask();
  }

  /** For `useSyncExternalStore`: the same object until something changes. */
  readonly getState = (): LiveRunState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    if (this.#retry) clearTimeout(this.#retry);
    for (const leave of this.#leave) leave();
    this.#connection.removeFollower(this.#options.runId);
  }

  #ask(): void {
    if (this.#asking || this.#stopped || !this.#connection.socket.connected) return;
    this.#asking = true;
    const request = { runId: this.#options.runId, after: this.#state.cursor };
    this.#connection.socket
      .timeout(this.#options.answerTimeoutMs ?? 5_000)
      .emit("subscribe", request, (timedOut: Error | null, answer?: SubscribeReply) => {
        this.#asking = false;
        if (this.#stopped) return;
        if (timedOut || !answer) {
          this.#again(250);
          return;
        }
        this.#connection.heard();
        if (!answer.ok) {
          this.#subscribed = false;
          this.#refresh({ error: answer.error });
          this.#again(2_000);
          return;
        }
        this.#subscribed = true;
        this.#refresh({ error: null, head: Math.max(this.#state.head, answer.head) });
      });
  }

  /** An unanswered or refused subscribe while still connected: try again; a cut is handled by the next `connect`. */
  #again(delayMs: number): void {
    if (!this.#connection.socket.connected || this.#retry) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.#ask();
    }, delayMs);
  }

  #cutOff(): void {
    this.#subscribed = false;
    this.#refresh({});
  }

  #take(message: EventsMessage): void {
    if (message.runId !== this.#options.runId || this.#stopped) return;
    this.#connection.heard();
    const cursor = this.#state.cursor;
    const fresh = message.events.filter((event) => event.seq > cursor);
    const head = Math.max(this.#state.head, message.head);
    const first = fresh[0];
    if (first && !isConsecutive(fresh, cursor)) {
      this.#refresh({ head });
      this.#ask();
      return;
    }
    const last = fresh.at(-1);
    // The cursor moves before the callback runs: a callback that throws must not make the same events come twice.
    this.#refresh({ head, cursor: last?.seq ?? cursor });
    if (last) this.#options.onEvents(fresh, head);
  }

  #refresh(change: Partial<Pick<LiveRunState, "cursor" | "head" | "error">>): void {
    const { connected, lastMessageAt } = this.#connection.getState();
    const next = { ...this.#state, ...change, connected, lastMessageAt };
    const stale = !connected || !this.#subscribed || next.error !== null || next.cursor < next.head;
    this.#state = { ...next, stale };
    for (const listener of this.#listeners) listener();
  }
}

const isConsecutive = (events: readonly RunEvent[], cursor: number): boolean =>
  events.every((event, index) => event.seq === cursor + 1 + index);
