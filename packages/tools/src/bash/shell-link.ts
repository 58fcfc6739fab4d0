/**
 * The talk with one supervisor (supervisor-script): one command at a time. Invariants: both streams are always read, so nothing in
 * the sandbox waits for us; output between commands is dropped; when the link breaks, the command that runs is told so, and
 * whether the sandbox itself is gone is the sandbox's own word.
 */

import { randomBytes } from "node:crypto";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Sandbox, SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import { textStart } from "../text-place.ts";
import { KeptEnds } from "./kept-ends.ts";
import { MarkedStream, type MarkFound } from "./marked-stream.ts";
import type { ShellSettings } from "./shell-settings.ts";
import { supervisorCommand, supervisorEnvironment } from "./supervisor-script.ts";

/** How the shell reads a command's stdin: nothing, a pipe that stays open, or nothing with no state of the shell. */
export type CommandMode = "empty" | "open" | "stateless";
const modeLetters = { empty: "n", open: "i", stateless: "s" } as const satisfies Record<CommandMode, string>;

export class RunningCommand {
  /** Output that was not taken yet. */
  output: KeptEnds;
  lastOutputAtMs: number;
  /** Its process in the sandbox, once it is known. */
  pid: number | null = null;
  /** Bytes of all it printed. */
  allBytes = 0;
  /** Null: the shell went away under it. */
  readonly ended: Promise<MarkFound | null>;
  isOver = false;
  readonly stream: MarkedStream;
  readonly mark: string;
  #end: (found: MarkFound | null) => void = () => {};

  constructor(
    readonly text: string,
    readonly maxOutputBytes: number,
    readonly now: () => number,
  ) {
    this.mark = randomBytes(16).toString("hex");
    this.lastOutputAtMs = now();
    this.output = new KeptEnds(maxOutputBytes);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.stream = new MarkedStream(this.mark, (bytes) => {
      this.output.push(bytes);
      this.allBytes += bytes.length;
      this.lastOutputAtMs = this.now();
    });
  }

  end(found: MarkFound | null): void {
    if (this.isOver) return;
    if (found === null) this.stream.flush();
    this.isOver = true;
    this.#end(found);
  }

  /** What it printed since the last time. */
  takeOutput(): KeptEnds {
    const taken = this.output;
    this.output = new KeptEnds(this.maxOutputBytes);
    return taken;
  }
}

export interface LinkFacts {
  readonly supervisorPid: number;
  /** Folder of the shell in the sandbox. */
  readonly folder: string;
  /** There was no state of an earlier shell. */
  readonly isNew: boolean;
  /** A command of an earlier shell still ran, and was ended. */
  readonly endedLeftover: boolean;
}

/** How long the streams of a supervisor that ended are waited for. */
const drainMs = 500;
const passed = (timeMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, timeMs).unref();
  });

/** Kept of what the supervisor says that is not for us: why it can't start. */
const maxWords = 2000;

export class ShellLink {
  #running: RunningCommand | null = null;
  #words = "";
  #closed = false;
  readonly #over: Promise<void>;
  readonly #waited: Promise<{ readonly exitCode: number | null }>;
  #ready: (facts: LinkFacts | null) => void = () => {};
  readonly #facts: Promise<LinkFacts | null>;

  private constructor(
    readonly process: SandboxProcess,
    readonly now: () => number,
  ) {
    this.#facts = new Promise((resolve) => {
      this.#ready = resolve;
    });
    this.#waited = process.wait();
    const streams = Promise.allSettled([this.#readOutput(), this.#readWords()]);
    // A supervisor that was killed may have left a stream to someone who holds it open.
    const drained = async () => {
      await Promise.race([streams, passed(drainMs)]);
      this.#break();
    };
    this.#over = this.#waited.then(drained, drained);
  }

  /**
   * @throws BoundaryError("tool", "bad_image") where the sandbox has no bash or no place for it
   * @throws BoundaryError("sandbox")
   */
  static async open(
    sandbox: Sandbox,
    settings: ShellSettings,
    now: () => number,
    signal: AbortSignal,
  ): Promise<{ link: ShellLink; facts: LinkFacts }> {
    const { user, cwd, environment } = settings;
    const process = await sandbox.spawn(
      {
        command: supervisorCommand,
        environment: { ...environment, ...supervisorEnvironment },
        ...(user !== undefined && { user }),
        ...(cwd !== undefined && { cwd }),
      },
      signal,
    );
    const link = new ShellLink(process, now);
    const facts = await orAborted(link.#facts, signal).catch(async (error) => {
      await link.close();
      throw error;
    });
    if (facts !== null) return { link, facts };
    const words = link.#words.trim();
    const { exitCode } = await link.#waited;
    await link.close();
    throw new BoundaryError("tool", "bad_image", whyNot(words, exitCode));
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** Resolves when the command is on its way. */
  async run(command: RunningCommand, mode: CommandMode): Promise<void> {
    this.#running = command;
    await this.#say(`c${command.mark}${modeLetters[mode]}${command.text}`);
  }

  /** What earlier commands set is forgotten. */
  forget(): Promise<void> {
    return this.#say("r");
  }

  /** @throws BoundaryError("sandbox") when the sandbox went away; resolves when only the shell did */
  async whyOver(): Promise<void> {
    await this.#over;
    await this.#waited;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.process.close();
    this.#break();
  }

  async #say(message: string): Promise<void> {
    try {
      await this.process.write(Buffer.from(`${message}\0`, "utf8"));
    } catch (error) {
      if (error instanceof BoundaryError && error.code === "gone") throw error;
      // Its stdin is closed, so it is at its end, and that is heard elsewhere.
    }
  }

  #break(): void {
    this.#closed = true;
    this.#ready(null);
    this.#running?.end(null);
    this.#running = null;
  }

  async #readOutput(): Promise<void> {
    for await (const chunk of this.process.stdout) {
      const running = this.#running;
      if (running === null) continue;
      const found = running.stream.push(chunk);
      if (found === null) continue;
      this.#running = null;
      running.end(found);
      await this.#say("a");
    }
  }

  async #readWords(): Promise<void> {
    let line = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.process.stderr) {
      line += decoder.decode(chunk, { stream: true });
      const lines = line.split("\n");
      line = (lines.pop() ?? "").slice(-maxWords);
      for (const one of lines) this.#hear(one);
    }
    this.#hear(line);
  }

  #hear(line: string): void {
    const ready = /^ready (\d+) (known|new) (clean|left) (\/.*)$/.exec(line);
    const run = /^run ([0-9a-f]{32}) (\d+)$/.exec(line);
    if (ready) {
      const [, pid, known, left, folder = ""] = ready;
      this.#ready({
        ...{ supervisorPid: Number(pid), folder },
        ...{ isNew: known === "new", endedLeftover: left === "left" },
      });
    } else if (run) {
      const running = this.#running;
      if (running !== null && running.mark === run[1]) running.pid = Number(run[2]);
    } else this.#words = `${this.#words}${line}\n`.slice(-maxWords);
  }
}

function whyNot(words: string, exitCode: number | null): string {
  if (words.startsWith("nowhere"))
    return "the shell has no place to keep its state: none of /var/tmp, /tmp, $HOME and /dev/shm can be written";
  const said = words === "" ? `it ended with ${exitCode ?? "no"} exit code` : textStart(words, 500);
  return `the sandbox's image can't run a shell: it needs bash and the programs cat, mkdir, mkfifo, mv and rm (${said})`;
}
