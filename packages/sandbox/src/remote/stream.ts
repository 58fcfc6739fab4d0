/**
 * One end of a stream: up to three byte channels, notes beside them, one outcome. The caller opens it and gets a result or an error;
 * the server of it reads, writes and settles it. Invariant: after the outcome, a cancel or the loss of the connection nothing more is
 * sent, and every reader, writer and waiter of this end has been told.
 */
import { ReceiveWindow, SendWindow } from "./byte-window.ts";
import { deferred } from "./deferred.ts";
import { ProtocolError, type StreamHeader } from "./frames.ts";
import type { Link, StreamSink } from "./link.ts";
import { isControl } from "./methods.ts";
import { fromWire, refused, toWire, unavailable } from "./wire-error.ts";

type Channel = 0 | 1 | 2;

/** Bytes of notes of one stream that are kept until someone takes them; the connection has a bound for all of its streams. */
const maxEarlyNoteBytes = 8 * 1024;

export class Stream implements StreamSink {
  readonly id: number;
  /** Opened by this side. */
  readonly #called: boolean;
  readonly #link: Link;
  readonly #over = new AbortController();
  readonly #receive = new Map<Channel, ReceiveWindow>();
  readonly #send = new Map<Channel, SendWindow>();
  readonly #outcome = deferred<unknown>();
  #onNote: ((body: unknown) => void) | null = null;
  #earlyNotes: unknown[] = [];
  #earlyNoteBytes = 0;
  #refused = false;
  #failure: Error | null = null;

  /** Opened by this side. @throws BoundaryError("sandbox", "unavailable") when the connection has ended */
  static open(link: Link, method: string, params: unknown): Stream {
    const stream = new Stream(link, null, isControl(method));
    try {
      link.send({ k: "open", s: stream.id, method, params });
    } catch (error) {
      link.forget(stream.id);
      throw error;
    }
    return stream;
  }

  /** Of an `open` frame that came (id), or a new one (null). */
  constructor(link: Link, id: number | null, control = false) {
    this.#link = link;
    this.#called = id === null;
    this.id = id ?? link.begin(this, control);
  }

  /** Aborted when the stream is over for whatever reason: for one that serves it, the caller wants no more. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** The caller's: what the server settled it with. Rejects with its error, or `unavailable` when the connection ended. */
  get outcome(): Promise<unknown> {
    return this.#outcome.promise;
  }

  /** The server settled it with an error; false: it may have been done, whatever is known of it here. */
  get wasRefused(): boolean {
    return this.#refused;
  }

  reader(channel: Channel): ReceiveWindow {
    let window = this.#receive.get(channel);
    if (window === undefined) {
      window = new ReceiveWindow((n) => this.#say({ k: "credit", s: this.id, c: channel, n }));
      if (this.over.aborted) window.end(this.#failure);
      this.#receive.set(channel, window);
    }
    return window;
  }

  /** @throws what ended the stream, if it ended before all was sent */
  write(channel: Channel, bytes: Uint8Array): Promise<void> {
    return this.#writer(channel).write(bytes);
  }

  end(channel: Channel): void {
    this.#say({ k: "end", s: this.id, c: channel });
  }

  note(body: unknown): void {
    this.#say({ k: "note", s: this.id, body });
  }

  /** Those that came before are handed over at once. */
  onNote(take: (body: unknown) => void): void {
    this.#onNote = take;
    this.#giveRoomBack();
    for (const body of this.#earlyNotes.splice(0)) take(body);
  }

  /** Serving side: the outcome. */
  finish(value: unknown): void {
    this.#say({ k: "result", s: this.id, value });
    this.#close(null, null);
  }
  fail(error: unknown): void {
    this.#say({ k: "error", s: this.id, error: toWire(error) });
    this.#close(null, null);
  }

  /** Calling side: wants no more. */
  cancel(reason: Error): void {
    this.#say({ k: "cancel", s: this.id });
    this.#close(reason, reason);
  }

  onFrame(header: StreamHeader, payload: Uint8Array): void {
    switch (header.k) {
      case "data":
        // What nobody will ever read is not kept.
        if ((header.c === 0) === this.#called) throw new ProtocolError(`bytes on channel ${header.c}`);
        this.reader(asChannel(header.c)).accept(payload);
        break;
      case "credit":
        this.#writer(asChannel(header.c)).grant(header.n);
        break;
      case "end":
        this.reader(asChannel(header.c)).end(null);
        break;
      case "note":
        this.#takeNote(header.body);
        break;
      case "result":
        this.#outcome.resolve(header.value);
        this.#close(null, null);
        break;
      case "error":
        this.#refused = true;
        this.#fail(fromWire(header.error));
        break;
      case "cancel":
        this.#fail(unavailable("the caller let go"));
        break;
      case "open":
        throw new ProtocolError(`stream ${header.s} is open already`);
    }
  }

  onLost(error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#close(error, error);
  }

  #writer(channel: Channel): SendWindow {
    let window = this.#send.get(channel);
    if (window === undefined) {
      window = new SendWindow((bytes) => this.#link.send({ k: "data", s: this.id, c: channel }, bytes));
      // Asked for after the end: it has ended, too.
      if (this.over.aborted) window.end(unavailable("the stream is over"));
      this.#send.set(channel, window);
    }
    return window;
  }

  /** Those that nobody takes are kept for a while. Too many of them end this stream alone: a host's connection carries all callers. */
  #takeNote(body: unknown): void {
    if (this.#onNote !== null) {
      this.#onNote(body);
      return;
    }
    const bytes = Buffer.byteLength(JSON.stringify(body) ?? "");
    const fits = this.#earlyNoteBytes + bytes <= maxEarlyNoteBytes && this.#link.keepEarly(bytes);
    if (fits) {
      this.#earlyNoteBytes += bytes;
      this.#earlyNotes.push(body);
    } else this.#refuse(refused("more notes than are kept for one who has not asked for any"));
  }

  #giveRoomBack(): void {
    this.#link.letEarlyGo(this.#earlyNoteBytes);
    this.#earlyNoteBytes = 0;
  }

  /** Ends it with an error at both ends, while it is under way: what was half read is not taken for whole. */
  #refuse(error: Error): void {
    this.#say(this.#called ? { k: "cancel", s: this.id } : { k: "error", s: this.id, error: toWire(error) });
    this.#fail(error);
  }

  #say(header: StreamHeader): void {
    if (!this.over.aborted) this.#link.send(header);
  }

  #close(outcome: Error | null, error: Error | null): void {
    if (this.over.aborted) return;
    this.#failure = error;
    this.#link.forget(this.id);
    this.#giveRoomBack();
    // A caller may still ask for them; one that serves is done.
    if (!this.#called) this.#earlyNotes = [];
    this.#over.abort(error ?? undefined);
    if (outcome !== null) this.#outcome.reject(outcome);
    for (const window of this.#receive.values()) window.end(error);
    for (const window of this.#send.values()) window.end(error);
  }
}

const asChannel = (channel: number): Channel => (channel === 0 ? 0 : channel === 1 ? 1 : 2);
