/**
 * A sandbox that writes down what is done in it, for people. Invariants: it changes nothing of what the sandbox does or says; the
 * log is bounded (the first lines and the newest are kept); contents of files and of stdin are never in it.
 */
import { cutMiddle, headWithin } from "@rolldeck/agent/core/cut-text";
import { decodeOutput } from "@rolldeck/agent/core/decode-output";
import { makeSafeOutput } from "@rolldeck/agent/core/make-safe-output";
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import type { SandboxLogLine } from "@rolldeck/contracts/sandbox-log";

const firstKept = 500;
const newestKept = 1_500;

export class SandboxLog {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #first: SandboxLogLine[] = [];
  readonly #newest: SandboxLogLine[] = [];
  #dropped = 0;

  /** @param now monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  get size(): number {
    return this.#first.length + this.#newest.length;
  }

  add(line: Pick<SandboxLogLine, "what" | "subject"> & Partial<SandboxLogLine>): void {
    const full = {
      atMs: this.#since(),
      durationMs: null,
      exitCode: null,
      bytes: null,
      ...line,
      subject: headWithin(makeSafeOutput(line.subject, 480), 500),
      trouble: line.trouble ? makeSafeOutput(line.trouble, 1_500) : null,
    };
    if (this.#first.length < firstKept) this.#first.push(full);
    else this.#newest.push(full);
    if (this.#newest.length > newestKept) {
      this.#newest.shift();
      this.#dropped += 1;
    }
  }

  /** Runs it and writes down how long it took and what went wrong. */
  async time<T>(
    what: SandboxLogLine["what"],
    subject: string,
    work: () => Promise<T>,
    facts: (done: T) => Partial<SandboxLogLine> = () => ({}),
  ): Promise<T> {
    const atMs = this.#since();
    try {
      const done = await work();
      this.add({ what, subject, atMs, durationMs: this.#since() - atMs, ...facts(done) });
      return done;
    } catch (error) {
      const trouble = error instanceof Error ? error.message : String(error);
      this.add({ what, subject, atMs, durationMs: this.#since() - atMs, trouble });
      throw error;
    }
  }

  /** JSON lines, oldest first. */
  text(): string {
    const gap = this.#dropped > 0 ? [this.#note(`${this.#dropped} lines left out`)] : [];
    return [...this.#first, ...gap, ...this.#newest].map((line) => `${JSON.stringify(line)}\n`).join("");
  }

  #note(subject: string): SandboxLogLine {
    const atMs = this.#newest[0]?.atMs ?? 0;
    return { atMs, what: "note", subject, durationMs: null, exitCode: null, bytes: null, trouble: null };
  }

  #since(): number {
    return Math.round((this.#now() - this.#startedAt) * 10) / 10;
  }
}

export class LoggedSandbox implements Sandbox {
  readonly id: string;
  readonly runtime: string;
  readonly workdir: string;
  readonly snapshot?: NonNullable<Sandbox["snapshot"]>;
  readonly reset?: NonNullable<Sandbox["reset"]>;
  readonly #inner: Sandbox;
  readonly #log: SandboxLog;

  constructor(inner: Sandbox, log: SandboxLog) {
    this.id = inner.id;
    this.runtime = inner.runtime;
    this.workdir = inner.workdir;
    this.#inner = inner;
    this.#log = log;
    const { snapshot, reset } = inner;
    if (snapshot) this.snapshot = (signal) => log.time("note", "snapshot", () => snapshot.call(inner, signal));
    if (reset) this.reset = (signal) => log.time("note", "reset", () => reset.call(inner, signal));
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#log.time("exec", words(request.command), () => this.#inner.exec(request, signal), execFacts);
  }

  spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
    return this.#log.time("spawn", words(request.command), () => this.#inner.spawn(request, signal));
  }

  killAll(signal: AbortSignal, user?: string): Promise<void> {
    return this.#log.time("kill", user ?? "all", () => this.#inner.killAll(signal, user));
  }

  readFile(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#log.time("read", path, () => this.#inner.readFile(path, options, signal), sizeOf);
  }

  writeFile(path: string, bytes: Uint8Array, options: { mode?: number; user?: string }, signal: AbortSignal) {
    const write = () => this.#inner.writeFile(path, bytes, options, signal);
    return this.#log.time("write", path, write, () => sizeOf(bytes));
  }

  putArchive(
    path: string,
    tar: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const put = () => this.#inner.putArchive(path, tar, options, signal);
    return this.#log.time("put", path, put, () => (tar instanceof Uint8Array ? sizeOf(tar) : {}));
  }

  getArchive(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    return this.#log.time("get", path, () => this.#inner.getArchive(path, options, signal), sizeOf);
  }
}

const words = (command: readonly string[]): string => headWithin(command.join(" "), 480);
const sizeOf = (bytes: Uint8Array): Partial<SandboxLogLine> => ({ bytes: bytes.length });

/** The end of what a command that failed said is worth a line; what one that succeeded said is not. */
function execFacts(result: ExecResult): Partial<SandboxLogLine> {
  const { exitCode, timedOut, flooded, outOfMemory, stdout, stderr } = result;
  const why = [timedOut && "timed out", flooded && "printed too much", outOfMemory && "out of memory"].filter(Boolean);
  const failed = exitCode !== 0 || why.length > 0;
  return {
    exitCode,
    bytes: stdout.bytes + stderr.bytes,
    trouble: failed ? [...why, lastWords(stderr.bytes > 0 ? stderr : stdout)].filter(Boolean).join(": ") || null : null,
  };
}

function lastWords({ head, tail }: ExecResult["stdout"]): string {
  const end = tail.length > 0 ? tail : head;
  const text = decodeOutput(end.subarray(Math.max(0, end.length - 2_000)));
  return cutMiddle({ head: "", gapBytes: 0, tail: text }, 1_000).text.trim();
}
