/**
 * One supervised process. Invariants: at most one live process per Child; it is started again after it ends on its own, with
 * back-off from 0.5 s to 10 s that resets after a minute of health; after `stop()`, or once `stopping` is aborted, it is never
 * started again (Ctrl-C reaches it as well, so it may be gone before it is told).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync, renameSync, statSync, type WriteStream } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Node processes get a channel, so that they end when the supervisor dies. */
  readonly channel: boolean;
  readonly logFolder: string;
  /** Aborted when the whole stack stops. */
  readonly stopping: AbortSignal;
  /** Called with each line it prints. */
  readonly onLine?: (line: string) => void;
  /** Called before each start after the first. @param said its last words, null when it printed nothing */
  readonly onRestart?: (code: number | null, signal: string | null, said: string | null) => void;
}

const maxLogBytes = 20 * 1024 * 1024;

export class Child {
  private process: ChildProcess | null = null;
  private stopped = false;
  private backOffMs = 500;
  private timer: NodeJS.Timeout | null = null;
  private readonly log: WriteStream;
  /** Last lines printed, for error messages. */
  readonly tail: string[] = [];

  constructor(private readonly spec: ChildSpec) {
    const file = path.join(spec.logFolder, `${spec.name}.log`);
    if (existsSync(file) && statSync(file).size > maxLogBytes) renameSync(file, `${file}.1`);
    this.log = createWriteStream(file, { flags: "a", mode: 0o600 });
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  start(): void {
    if (this.isOver() || this.process !== null) return;
    const startedAt = Date.now();
    const child = spawn(this.spec.command, this.spec.args, {
      cwd: this.spec.cwd,
      env: { ...this.spec.env },
      stdio: ["ignore", "pipe", "pipe", ...(this.spec.channel ? (["ipc"] as const) : [])],
    });
    this.process = child;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => this.onLine(line));
    }
    child.once("error", (error) => this.onLine(`could not start: ${error.message}`));
    child.once("close", (code, signal) => this.onClose(code, signal, Date.now() - startedAt));
  }

  private isOver(): boolean {
    return this.stopped || this.spec.stopping.aborted;
  }

  private onLine(line: string): void {
    this.log.write(`${new Date().toISOString()} ${line}\n`);
    this.tail.push(line);
    if (this.tail.length > 30) this.tail.shift();
    this.spec.onLine?.(line);
  }

  private onClose(code: number | null, signal: string | null, livedMs: number): void {
    this.process = null;
    if (this.isOver()) return;
    if (livedMs > 60_000) this.backOffMs = 500;
    this.spec.onRestart?.(code, signal, this.tail.findLast((line) => line.trim() !== "") ?? null);
    this.timer = setTimeout(() => this.start(), this.backOffMs);
    this.backOffMs = Math.min(this.backOffMs * 2, 10_000);
  }

  /** SIGTERM, then SIGKILL after `graceMs`; resolves when the process is gone. */
  async stop(graceMs: number): Promise<void> {
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    const child = this.process;
    if (child === null) return;
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), graceMs);
    await gone;
    clearTimeout(force);
    this.log.end();
  }
}
