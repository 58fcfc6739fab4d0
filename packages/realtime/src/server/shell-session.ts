/**
 * One socket's shell. Invariants: at most one per socket and `limits.shells` on the server; what is opened is left again, once, whatever
 * ends it; a shell that can't be checked does not go on; output waits for the client and for its pace, input and sizes for the sandbox, so none
 * costs memory here; the client is told why it ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  OpenShell,
  type OpenShellReply,
  ResizeShell,
  type ShellEnd,
  shellPieceBytes,
  shellWindow,
} from "@rolldeck/contracts/wire/shell";
import { Pace } from "./pace.ts";
import { type OpenedShell, type ShellCaller, type ShellHost, type ShellLimits, ShellRefusal } from "./shell-host.ts";
import type { RunSocket } from "./socket-session.ts";

/** Shells that are open on this server. */
export interface ShellSlots {
  used: number;
}
export interface ShellSessionOptions {
  readonly host: ShellHost;
  readonly limits: ShellLimits;
  readonly slots: ShellSlots;
  readonly caller: ShellCaller;
  readonly onError: (error: unknown) => void;
}

const lastWordsMs = 2_000;
/** For one look at whether a shell may go on; one that takes longer says nothing, which is no leave. */
const objectionMs = 10_000;

/** Input that a client may have under way; one that follows the protocol has one piece. */
const maxInputs = 16;

export class ShellSession {
  #shell: OpenedShell | null = null;
  #asked = false;
  readonly #ending = new AbortController();
  readonly #pace: Pace;
  #underWay = 0;
  /** Of those who wait for a piece to be taken. */
  readonly #waiting = new Set<() => void>();
  #over: Promise<void> = Promise.resolve();
  #inputs = 0;
  #lastInput: Promise<void> = Promise.resolve();
  #wantedSize: ResizeShell | null = null;
  #resizing: Promise<void> | null = null;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #check: ReturnType<typeof setInterval> | undefined;
  #checking = false;

  constructor(
    private readonly socket: RunSocket,
    private readonly options: ShellSessionOptions,
  ) {
    this.#pace = new Pace(options.limits.bytesPerSecond, options.limits.bytesPerSecond / 4);
    // What a client sends is a stranger's: every message is parsed, whatever its type says.
    socket.on("shell-open", (request, reply) => {
      const over = this.#open(request, reply);
      this.#over = Promise.all([this.#over, over]).then(() => undefined);
    });
    socket.on("shell-input", (bytes, taken) => this.#input(bytes, taken));
    socket.on("shell-resize", (size) => this.#resize(size));
    socket.on("disconnect", () => this.#end(null));
  }

  async #open(request: unknown, reply: (answer: OpenShellReply) => void): Promise<void> {
    if (typeof reply !== "function") return;
    const asked = OpenShell.safeParse(request);
    if (!asked.success) return reply({ ok: false, error: "shell-open takes {runId, sandboxId, columns, rows}" });
    if (this.#asked) return reply({ ok: false, error: "this socket has, or had, its shell" });
    const { host, slots, limits, caller, onError } = this.options;
    if (slots.used >= limits.shells)
      return reply({
        ok: false,
        error: `${limits.shells} shells are open on this server, which is all there may be; leave one first`,
      });
    this.#asked = true;
    slots.used += 1;
    try {
      const shell = await host.open(asked.data, caller, this.#ending.signal);
      if (this.#ending.signal.aborted) return void (await shell.leave());
      this.#shell = shell;
      reply({ ok: true });
      await this.#run(shell);
      await shell.leave();
    } catch (error) {
      // Who left before it was open has nobody to tell.
      if (!(error instanceof ShellRefusal || error === this.#ending.signal.reason)) onError(error);
      reply({ ok: false, error: error instanceof ShellRefusal ? error.message : "the shell could not be opened" });
    } finally {
      slots.used -= 1;
    }
  }

  /** Until it is over. Never throws. */
  async #run(shell: OpenedShell): Promise<void> {
    const { checkMs } = this.options.limits;
    this.#touched();
    this.#check = setInterval(() => this.#object(shell), checkMs);
    const { stdout, stderr } = shell.process;
    const exit = shell.process.wait().then(
      ({ exitCode }): ShellEnd => ({
        reason: exitCode === 0 ? "the shell ended" : `the shell ended with ${exitCode ?? "no exit code"}`,
        exitCode,
      }),
      (): ShellEnd => ({ reason: "the sandbox is gone", exitCode: null }),
    );
    const ended = new Promise<void>((resolve) => this.#ending.signal.addEventListener("abort", () => resolve()));
    // Its last words first, then that it is over.
    const done = Promise.all([this.#pump(stdout), this.#pump(stderr)]).then(() => exit);
    await Promise.race([done.then((end) => this.#end(end)), ended]);
  }

  async #pump(stream: AsyncIterable<Uint8Array>): Promise<void> {
    const { signal } = this.#ending;
    try {
      for await (const bytes of stream) {
        for (let from = 0; from < bytes.length; from += shellPieceBytes) {
          const piece = bytes.subarray(from, from + shellPieceBytes);
          const waitMs = this.#pace.take(piece.length, performance.now());
          if (waitMs > 0) await sleep(waitMs, undefined, { signal });
          while (this.#underWay >= shellWindow && !signal.aborted) await this.#pieceTaken();
          if (signal.aborted) return;
          this.#send(piece);
        }
      }
    } catch (error) {
      // A stream that breaks is told by `wait`; one that we left has nobody to tell.
      if (!signal.aborted) this.options.onError(error);
    }
  }

  #send(piece: Uint8Array): void {
    this.#underWay += 1;
    this.socket.emit("shell-output", piece, () => {
      this.#underWay -= 1;
      this.#wakeAll();
    });
  }
  #pieceTaken(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }
  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #input(bytes: unknown, taken: unknown): void {
    const shell = this.#shell;
    if (!shell || this.#ending.signal.aborted) return;
    if (!(bytes instanceof Uint8Array) || bytes.length > shellPieceBytes) {
      this.#end({ reason: `input comes as bytes, at most ${shellPieceBytes} at once`, exitCode: null });
      return;
    }
    if (this.#inputs >= maxInputs) {
      this.#end({ reason: "input came faster than the sandbox took it", exitCode: null });
      return;
    }
    this.#touched();
    this.#inputs += 1;
    const written = this.#lastInput.then(() => shell.process.write(bytes));
    this.#lastInput = written.then(
      () => {
        this.#inputs -= 1;
        if (typeof taken === "function") taken();
      },
      () => this.#endDeaf(),
    );
  }

  /** A shell that ended takes no input: how it ended comes first, where that is heard of soon. */
  #endDeaf(): void {
    const end = () => this.#end({ reason: "the sandbox takes no input any more", exitCode: null });
    setTimeout(end, lastWordsMs).unref();
  }

  #resize(size: unknown): void {
    const parsed = ResizeShell.safeParse(size);
    if (!parsed.success || !this.#shell) return;
    this.#wantedSize = parsed.data;
    this.#resizing ??= this.#resizeAll(this.#shell.process);
  }

  /** One at a time, and of those that came meanwhile the last: each is a call on the sandbox's runtime. Never throws. */
  async #resizeAll(process: OpenedShell["process"]): Promise<void> {
    for (let size = this.#wantedSize; size && !this.#ending.signal.aborted; size = this.#wantedSize) {
      this.#wantedSize = null;
      // Another size is no reason to end a shell: at worst its lines break in the wrong places.
      await process.resize?.(size.columns, size.rows).catch(this.options.onError);
    }
    this.#resizing = null;
  }

  #touched(): void {
    const { idleMs } = this.options.limits;
    clearTimeout(this.#idle);
    const reason = `no key came for ${Math.round(idleMs / 60_000)} min`;
    this.#idle = setTimeout(() => this.#end({ reason, exitCode: null }), idleMs);
  }

  #object(shell: OpenedShell): void {
    if (this.#checking) return;
    this.#checking = true;
    withLimit(shell.objection(), objectionMs)
      .catch((error: unknown) => {
        this.options.onError(error);
        return "whether it may go on could not be checked; open it again";
      })
      .then((reason) => {
        this.#checking = false;
        if (reason !== null) this.#end({ reason, exitCode: null });
      });
  }

  /** @param end what the client is told; null: it is gone */
  #end(end: ShellEnd | null): void {
    if (this.#ending.signal.aborted) return;
    clearTimeout(this.#idle);
    clearInterval(this.#check);
    if (end) this.socket.emit("shell-ended", end);
    this.#ending.abort();
    this.#wakeAll();
    if (end) this.socket.disconnect();
  }

  /** The server goes down. Resolves when the shell is left. */
  async stop(): Promise<void> {
    this.#end({ reason: "the server stops", exitCode: null });
    await this.#over;
  }
}

function withLimit<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${limitMs / 1000} s`)), limitMs);
    timer.unref();
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
