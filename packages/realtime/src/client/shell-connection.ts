/**
 * One shell in a sandbox over a socket of its own. It is opened once and never by itself again: what was typed into a shell that broke
 * off is nobody's to repeat. Works in the browser (session cookie) and in Node (`url` and `token`).
 */

import {
  type OpenShell,
  type ResizeShell,
  type ShellEnd,
  shellNamespace,
  shellPieceBytes,
} from "@rolldeck/contracts/wire/shell";
import type { ClientToServer, ServerToClient } from "@rolldeck/contracts/wire/socket";
import { socketPath } from "@rolldeck/contracts/wire/socket";
import { io, type Socket } from "socket.io-client";

export interface ShellConnectionOptions {
  /** Origin of the server; absent in the browser: the page's own. */
  readonly url?: string;
  /** API or owner token; absent in the browser: the session cookie. */
  readonly token?: string;
  readonly asked: OpenShell;
  readonly onOpen: () => void;
  /** Resolves when the bytes were taken: until then not much more comes. */
  readonly onOutput: (bytes: Uint8Array) => void | Promise<void>;
  /** Once, whatever ended it. */
  readonly onEnd: (end: ShellEnd) => void;
}

/** Bytes typed or pasted that wait for the sandbox: more than one that does not wait for `drained` may have under way. */
const maxWaiting = 1024 * 1024;
/** Past this, whoever reads a pipe waits. */
const fullBytes = 256 * 1024;

export class ShellConnection {
  readonly #socket: Socket<ServerToClient, ClientToServer>;
  readonly #options: ShellConnectionOptions;
  readonly #waiting: Uint8Array[] = [];
  readonly #onDrained = new Set<() => void>();
  #waitingBytes = 0;
  #sending = false;
  #open = false;
  #over = false;
  /** Where it is another one than was asked for: a terminal may change while its shell is opened. */
  #size: ResizeShell | null = null;

  constructor(options: ShellConnectionOptions) {
    this.#options = options;
    const settings = {
      path: socketPath,
      transports: ["websocket", "polling"],
      tryAllTransports: true,
      withCredentials: true,
      reconnection: false,
      forceNew: true,
      ...(options.token ? { auth: { token: options.token } } : {}),
    };
    this.#socket = io(`${options.url ?? ""}${shellNamespace}`, settings);
    this.#socket.on("connect", () => this.#ask());
    this.#socket.on("connect_error", (error) => this.#end(error.message));
    this.#socket.on("disconnect", () => this.#end("the connection broke off"));
    this.#socket.on("shell-output", (bytes, taken) => void this.#output(bytes, taken));
    this.#socket.on("shell-ended", ({ reason, exitCode }) => this.#end(reason, exitCode));
  }

  /** More waits than the sandbox takes soon: what has more to send waits for `drained`. */
  get isFull(): boolean {
    return this.#waitingBytes > fullBytes;
  }

  /** Resolves when it is no longer full, or over. */
  drained(): Promise<void> {
    if (!this.isFull || this.#over) return Promise.resolve();
    return new Promise((resolve) => this.#onDrained.add(resolve));
  }

  /** Bytes for the shell; they are dropped where there is none. */
  write(bytes: Uint8Array): void {
    if (!this.#open || this.#over) return;
    if (this.#waitingBytes + bytes.length > maxWaiting) {
      this.#end("more was typed than the sandbox takes");
      return;
    }
    for (let from = 0; from < bytes.length; from += shellPieceBytes)
      this.#waiting.push(bytes.slice(from, from + shellPieceBytes));
    this.#waitingBytes += bytes.length;
    this.#sendNext();
  }

  resize(columns: number, rows: number): void {
    this.#size = { columns, rows };
    if (this.#open && !this.#over) this.#socket.emit("shell-resize", this.#size);
  }

  close(): void {
    this.#end("left");
  }

  #ask(): void {
    this.#socket.emit("shell-open", this.#options.asked, (answer) => {
      if (!answer.ok) {
        this.#end(answer.error);
        return;
      }
      this.#open = true;
      if (this.#size) this.#socket.emit("shell-resize", this.#size);
      this.#options.onOpen();
    });
  }

  async #output(bytes: Uint8Array | ArrayBuffer, taken: () => void): Promise<void> {
    // Browsers bring an ArrayBuffer, Node a view.
    await this.#options.onOutput(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes);
    taken();
  }

  #sendNext(): void {
    if (this.#sending) return;
    const next = this.#waiting.shift();
    if (!next) return;
    this.#sending = true;
    this.#socket.emit("shell-input", next, () => {
      this.#sending = false;
      this.#waitingBytes -= next.length;
      if (!this.isFull) this.#wakeDrained();
      this.#sendNext();
    });
  }

  #wakeDrained(): void {
    for (const wake of this.#onDrained) wake();
    this.#onDrained.clear();
  }

  #end(reason: string, exitCode: number | null = null): void {
    if (this.#over) return;
    this.#over = true;
    this.#wakeDrained();
    this.#socket.disconnect();
    this.#options.onEnd({ reason, exitCode });
  }
}
