/**
 * One WebSocket connection that carries many streams. One side opens streams (the client to the gateway, the gateway to a host), the
 * other serves them. Invariants: a connection that says nothing for `silenceMs` is dead; when it ends, every stream on it hears so
 * once; frames of a stream that is over are dropped.
 */
import type { RawData, WebSocket } from "ws";
import { decodeFrame, encodeFrame, type Header, ProtocolError, type StreamHeader } from "./frames.ts";
import { unavailable } from "./wire-error.ts";

/** Takes the frames of one stream. */
export interface StreamSink {
  onFrame(header: StreamHeader, payload: Uint8Array): void;
  /** The connection ended first. */
  onLost(error: Error): void;
}

export interface LinkEvents {
  /** A stream was opened by the other side; absent: that is against the protocol. */
  onStream?(header: Extract<Header, { k: "open" }>, link: Link): StreamSink;
  /** Any frame that belongs to no stream. */
  onGreeting(header: Header): void;
  /** Once. */
  onEnd(error: Error): void;
}

const pingEveryMs = 5_000;
const silenceMs = 25_000;
/** Streams that are open at once. */
export const maxStreams = 4096;
/** Of them, kept free for calls without which nothing would end: renewing, closing, asking what there is. */
export const controlStreams = 256;
/** Bytes of notes, on all streams, that came before anyone took them. */
const maxEarlyNoteBytes = 64 * 1024;
/** Backstop: credit bounds what is on its way, this what a peer that reads nothing can make of small frames. */
const maxBufferedBytes = 512 * 1024 * 1024;

export class Link {
  readonly #socket: WebSocket;
  readonly #events: LinkEvents;
  readonly #sinks = new Map<number, StreamSink>();
  readonly #heartbeat: NodeJS.Timeout;
  #heardAt = performance.now();
  #beatAt = performance.now();
  #lastId = 0;
  #earlyNoteBytes = 0;
  #ended: Error | null = null;

  /** Of a socket that is open. */
  constructor(socket: WebSocket, events: LinkEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.binaryType = "nodebuffer";
    socket.on("message", (data, isBinary) => this.#onMessage(data, isBinary));
    for (const event of ["ping", "pong"] as const) {
      socket.on(event, () => {
        this.#heardAt = performance.now();
      });
    }
    socket.on("close", (code, reason) => this.#end(unavailable(`connection closed (${code} ${reason})`.trim())));
    socket.on("error", (error) => this.#end(unavailable(`connection failed: ${error.message}`, error)));
    this.#heartbeat = setInterval(() => this.#beat(), pingEveryMs);
    this.#heartbeat.unref();
  }

  get ended(): Error | null {
    return this.#ended;
  }
  get openStreams(): number {
    return this.#sinks.size;
  }

  /**
   * A new stream's id; frames for it go to the sink until `forget`.
   * @param control a call for which room is kept
   * @throws BoundaryError("sandbox", "unavailable") when the connection has ended, or carries all it may
   */
  begin(sink: StreamSink, control = false): number {
    if (this.#ended !== null) throw this.#ended;
    // The other side would end the connection, and with it all the others.
    const most = control ? maxStreams : maxStreams - controlStreams;
    if (this.#sinks.size >= most) throw unavailable(`${most} calls are under way on one connection`);
    do {
      this.#lastId = this.#lastId >= 2 ** 31 - 1 ? 1 : this.#lastId + 1;
    } while (this.#sinks.has(this.#lastId));
    this.#sinks.set(this.#lastId, sink);
    return this.#lastId;
  }

  forget(id: number): void {
    this.#sinks.delete(id);
  }

  /** Room for notes that nobody takes yet; to be given back. False: there is none. */
  keepEarly(bytes: number): boolean {
    if (this.#earlyNoteBytes + bytes > maxEarlyNoteBytes) return false;
    this.#earlyNoteBytes += bytes;
    return true;
  }
  letEarlyGo(bytes: number): void {
    this.#earlyNoteBytes -= bytes;
  }

  /** Dropped silently when the connection has ended: the sinks have heard. @throws ProtocolError for too large a frame */
  send(header: Header, payload?: Uint8Array): void {
    if (this.#ended !== null) return;
    const message = encodeFrame(header, payload);
    if (this.#socket.bufferedAmount > maxBufferedBytes) this.#fail("the other side does not read");
    else this.#socket.send(message);
  }

  /** Whether the other side is there: it answers a ping within the time. */
  answers(limitMs: number): Promise<boolean> {
    if (this.#ended !== null) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (answered: boolean) => (): void => {
        clearTimeout(timer);
        this.#socket.off("pong", onPong).off("close", onClose);
        resolve(answered);
      };
      const [onPong, onClose] = [settle(true), settle(false)];
      const timer = setTimeout(settle(false), limitMs);
      this.#socket.on("pong", onPong).on("close", onClose);
      this.#socket.ping();
    });
  }

  /** Ends the connection on purpose. */
  close(reason: string): void {
    this.send({ k: "bye", reason: reason.slice(0, 1000) });
    this.#socket.close(1000);
    this.#end(unavailable(reason));
    // One that does not answer the close is cut.
    setTimeout(() => this.#socket.terminate(), 1_000).unref();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    this.#heardAt = performance.now();
    if (this.#ended !== null) return;
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new ProtocolError("a message that is not binary");
      const { header, payload } = decodeFrame(data);
      if (!("s" in header)) this.#events.onGreeting(header);
      else if (header.k === "open") this.#begin(header);
      else this.#sinks.get(header.s)?.onFrame(header, payload);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#fail(`protocol error: ${error.message}`);
    }
  }

  #begin(header: Extract<Header, { k: "open" }>): void {
    if (this.#events.onStream === undefined) throw new ProtocolError("only the other side opens streams");
    if (this.#sinks.has(header.s)) throw new ProtocolError(`stream ${header.s} is open already`);
    if (this.#sinks.size >= maxStreams) throw new ProtocolError(`more than ${maxStreams} streams`);
    // Set before it is served: what serves it may end it at once.
    const waiting: StreamSink = { onFrame: () => undefined, onLost: () => undefined };
    this.#sinks.set(header.s, waiting);
    const sink = this.#events.onStream(header, this);
    if (this.#sinks.get(header.s) === waiting) this.#sinks.set(header.s, sink);
  }

  #beat(): void {
    const now = performance.now();
    // This process stood still: what was said meanwhile has not been read yet.
    if (now - this.#beatAt > 2 * pingEveryMs) this.#heardAt = now;
    this.#beatAt = now;
    if (now - this.#heardAt > silenceMs) this.#fail("the other side is silent");
    else this.#socket.ping();
  }

  #fail(reason: string): void {
    try {
      this.#socket.send(encodeFrame({ k: "bye", reason: reason.slice(0, 1000) }));
    } catch {
      // The reason is a courtesy; the connection ends either way.
    }
    this.#socket.close(1002);
    setTimeout(() => this.#socket.terminate(), 200).unref();
    this.#end(unavailable(reason));
  }

  #end(error: Error): void {
    if (this.#ended !== null) return;
    this.#ended = error;
    clearInterval(this.#heartbeat);
    for (const sink of [...this.#sinks.values()]) sink.onLost(error);
    this.#sinks.clear();
    this.#events.onEnd(error);
  }
}
