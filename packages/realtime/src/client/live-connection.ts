/**
 * One socket to a Rolldeck server, shared by everything on a page. It only carries hints: what was missed while it was cut
 * off is asked for again by `seq` (live-run.ts), so nothing here buffers or replays.
 *
 * Works in the browser (session cookie, same origin) and in Node (`url` and `token`). All times are the client's clock, ms.
 */
import {
  type ClientToServer,
  type RunsChangedMessage,
  type ServerToClient,
  type SubscribeReply,
  socketPath,
} from "@rolldeck/contracts/wire/socket";
import { io, type Socket } from "socket.io-client";

export type LiveSocket = Socket<ServerToClient, ClientToServer>;

export interface LiveConnectionOptions {
  /** Origin of the server; absent in the browser: the page's own. */
  readonly url?: string;
  /** API or owner token; absent in the browser: the session cookie. */
  readonly token?: string;
  /** Delay before the first reconnect, doubled up to `reconnectMaxMs`. */
  readonly reconnectMs?: number;
  readonly reconnectMaxMs?: number;
  readonly now?: () => number;
}

export interface ConnectionState {
  readonly connected: boolean;
  /** Last time the server was heard (an event, an answer or its heartbeat); null before the first. */
  readonly lastMessageAt: number | null;
  /** Why it is cut off, in a few words; null while connected. */
  readonly reason: string | null;
}

export class LiveConnection {
  readonly socket: LiveSocket;
  readonly now: () => number;
  #state: ConnectionState = { connected: false, lastMessageAt: null, reason: "connecting" };
  readonly #listeners = new Set<() => void>();
  readonly #runsListeners = new Set<(runIds: readonly string[]) => void>();
  /** Followers of each run: the server is told to stop when the last one goes. */
  readonly #followers = new Map<string, number>();

  constructor(options: LiveConnectionOptions = {}) {
    this.now = options.now ?? Date.now;
    const settings = {
      path: socketPath,
      // Long polling needs every request to reach the same api process; a WebSocket does not.
      transports: ["websocket", "polling"],
      tryAllTransports: true,
      withCredentials: true,
      reconnectionDelay: options.reconnectMs ?? 300,
      reconnectionDelayMax: options.reconnectMaxMs ?? 3_000,
      forceNew: true,
      ...(options.token ? { auth: { token: options.token } } : {}),
    };
    this.socket = options.url ? io(options.url, settings) : io(settings);
    this.socket.on("connect", () => this.#connected());
    this.socket.on("disconnect", (reason) => this.#cutOff(reason));
    this.socket.on("connect_error", (error) => this.#cutOff(error.message));
    this.socket.on("runs-changed", (message) => this.#runsChanged(message));
    this.socket.io.on("ping", () => this.heard());
  }

  /** For `useSyncExternalStore`: the same object until something changes. */
  readonly getState = (): ConnectionState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Ids of runs that changed, for the run list. After a reconnect it is called with [] once: fetch everything again. */
  watchRuns(listener: (runIds: readonly string[]) => void): () => void {
    this.#runsListeners.add(listener);
    if (this.#runsListeners.size === 1 && this.socket.connected) this.#askForRuns();
    return () => this.#runsListeners.delete(listener);
  }

  /** Called by followers whenever the server said something. */
  heard(): void {
    this.#set({ ...this.#state, lastMessageAt: this.now() });
  }

  addFollower(runId: string): void {
    this.#followers.set(runId, (this.#followers.get(runId) ?? 0) + 1);
  }
  removeFollower(runId: string): void {
    const left = (this.#followers.get(runId) ?? 1) - 1;
    if (left > 0) this.#followers.set(runId, left);
    else {
      this.#followers.delete(runId);
      if (this.socket.connected) this.socket.emit("unsubscribe", { runId });
    }
  }

  close(): void {
    this.socket.close();
    this.#cutOff("closed");
  }

  #connected(): void {
    this.#set({ connected: true, lastMessageAt: this.now(), reason: null });
    if (this.#runsListeners.size > 0) {
      this.#askForRuns();
      for (const listener of this.#runsListeners) listener([]);
    }
  }
  #cutOff(reason: string): void {
    this.#set({ ...this.#state, connected: false, reason });
    // The server closed on purpose (it went down, or the session ended): the client library would not try again by itself.
    if (reason === "io server disconnect") this.socket.connect();
  }
  #askForRuns(): void {
    this.socket.emit("watch-runs", (_answer: SubscribeReply) => this.heard());
  }
  #runsChanged(message: RunsChangedMessage): void {
    this.heard();
    for (const listener of this.#runsListeners) listener(message.runIds);
  }
  #set(state: ConnectionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
