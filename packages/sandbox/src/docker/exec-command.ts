/**
 * One command in a container: started, its output collected with a cap, and its end told. Invariants: at most the caps are held of
 * what it writes, however much that is; when its time or its output is over, every process of its user in the container is ended;
 * that a sandbox went away is never told as the failure of a command.
 *
 * An abort lets go of the command without ending it: whoever took the sandbox over may already run another, which would be ended
 * with it. Those who stay call `killAll` or close the sandbox.
 */
import type { Duplex, Readable } from "node:stream";
import type { ExecRequest, ExecResult } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { CommandOutput } from "../shared/command-output.ts";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { neverBegan, unfitReason } from "../shared/unfit-command.ts";
import { pause, unlessAborted } from "../shared/waiting.ts";
import { ContainerAnswer, ExecAnswer } from "./answers.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import { askProcessesToEnd, killProcesses } from "./kill-processes.ts";
import { OutputFrames } from "./output-frames.ts";

/** Between the request to end and the end, milliseconds. */
const graceMs = 1_000;
/** A stream that is still open this long after all its processes were ended is let go. */
const closingMs = 3_000;
const removalMs = 300;
const oomWordMs = 300;

export const execOptions = (
  scene: ContainerScene,
  request: Pick<ExecRequest, "command" | "cwd" | "environment" | "user">,
): Docker.ExecCreateOptions => ({
  Cmd: [...request.command],
  AttachStdout: true,
  AttachStderr: true,
  User: request.user ?? scene.user,
  WorkingDir: request.cwd ?? scene.workdir,
  Env: Object.entries(request.environment ?? {}).map(([name, value]) => `${name}=${value}`),
});

/** @throws BoundaryError("sandbox"), or the signal's reason */
export async function execCommand(
  scene: ContainerScene,
  request: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  signal.throwIfAborted();
  const unfit = unfitReason(request);
  if (unfit !== null) return neverBegan(126, unfit);
  return new RunningCommand(scene, request).run(signal);
}

class RunningCommand {
  readonly #scene: ContainerScene;
  readonly #request: ExecRequest;
  readonly #startedMs = performance.now();
  readonly #output: CommandOutput;
  #timedOut = false;
  #flooded = false;
  /** False: what it seems to have said is the daemon's word. */
  #began = true;
  #ending: Promise<void> | null = null;
  #stream: Readable | null = null;

  constructor(scene: ContainerScene, request: ExecRequest) {
    this.#scene = scene;
    this.#request = request;
    this.#output = new CommandOutput(request, () => this.#stopFlood());
  }

  async run(signal: AbortSignal): Promise<ExecResult> {
    const timer = setTimeout(() => {
      this.#timedOut = true;
      this.#ending ??= this.#end("TERM");
      this.#ending.catch(() => undefined);
    }, this.#request.timeoutMs);
    try {
      return await unlessAborted(this.#follow(), signal);
    } finally {
      clearTimeout(timer);
      if (signal.aborted) this.#stream?.destroy();
    }
  }

  async #follow(): Promise<ExecResult> {
    const { stdin } = this.#request;
    const options = { ...execOptions(this.#scene, this.#request), AttachStdin: stdin !== undefined };
    await this.#scene.oom.ready();
    const exec = await asked("starting a command", this.#scene.container.exec(options));
    let stream: Duplex;
    try {
      const starting = exec.start(stdin === undefined ? { Detach: false } : { hijack: true, stdin: true });
      stream = await heard("starting a command", starting, { late: (unwanted) => unwanted.destroy() });
    } catch (error) {
      return this.#notStarted(error);
    }
    this.#stream = stream;
    // Its time was over before it began: what ended the others missed it.
    if (this.#ending !== null) {
      this.#ending = this.#ending.catch(() => undefined).then(() => this.#end("KILL"));
      this.#ending.catch(() => undefined);
    }
    if (stdin !== undefined) writeInput(stream, stdin);
    await this.#collect(stream);
    const exitCode = this.#ending === null ? await this.#exitCode(exec) : null;
    // Its time may have been over while it was asked.
    if (this.#ending === null) return this.#result(exitCode);
    await this.#ending;
    return this.#result(null);
  }

  /** A program that is not there is a failed command; daemons tell of it by status or in the output. */
  #notStarted(error: unknown): Promise<ExecResult> {
    const text = error instanceof Error ? error.message : String(error);
    if (statusOf(error) === null || !isStartFailure(text)) throw daemonTrouble(error, "starting a command");
    return this.#startFailure(text);
  }

  /** In a sandbox that just ended nothing starts either: that is no failure of the command. */
  async #startFailure(text: string): Promise<ExecResult> {
    const { container, id } = this.#scene;
    if (text.includes("unable to find user")) throw refused(`the sandbox has no user ${this.#request.user}`);
    const missing = !text.includes("chdir to cwd") && /executable file not found|no such file or directory/.test(text);
    if (!(await (missing ? isRunning(container) : livesOn(container)))) throw sandboxGone(id);
    return neverBegan(missing ? 127 : 126, text, performance.now() - this.#startedMs);
  }

  #collect(stream: Readable): Promise<void> {
    const frames = new OutputFrames();
    return new Promise((resolve, reject) => {
      stream.on("data", (chunk: Buffer) => {
        try {
          frames.push(chunk, (name, bytes) => this.#output.take(name, bytes));
        } catch (error) {
          reject(error);
          stream.destroy();
        }
      });
      stream.once("end", resolve).once("close", resolve);
      stream.once("error", (error) => reject(daemonTrouble(error, "reading a command's output")));
    });
  }

  #stopFlood(): void {
    this.#flooded = true;
    this.#ending ??= this.#end("KILL");
    this.#ending.catch(() => this.#stream?.destroy());
  }

  /** Ends all of the user's processes, and then waits for the stream to see it. */
  async #end(first: "TERM" | "KILL"): Promise<void> {
    const user = this.#request.user ?? this.#scene.user;
    try {
      if (first === "TERM") {
        await askProcessesToEnd(this.#scene, user);
        await this.#closed(graceMs);
      }
      await killProcesses(this.#scene, user);
      await this.#closed(closingMs);
    } finally {
      this.#stream?.destroy();
    }
  }

  #closed(waitMs: number): Promise<void> {
    const stream = this.#stream;
    if (stream === null || stream.readableEnded || stream.destroyed) return Promise.resolve();
    const seen = new AbortController();
    stream.once("end", () => seen.abort()).once("close", () => seen.abort());
    return pause(waitMs, seen.signal);
  }

  /** A command may go on after it closed its output, until its time is over. */
  async #exitCode(exec: Docker.Exec): Promise<number | null> {
    for (let waitMs = 5; ; waitMs = Math.min(250, waitMs * 2)) {
      const { Running, ExitCode, Pid } = ExecAnswer.parse(await asked("ending a command", exec.inspect()));
      if (!Running) {
        this.#began = (Pid ?? 0) !== 0;
        return ExitCode;
      }
      if (this.#ending !== null) return null;
      await pause(waitMs);
    }
  }

  async #result(exitCode: number | null): Promise<ExecResult> {
    const { container, id, oom } = this.#scene;
    const { stdout, stderr } = this.#output.result();
    if (exitCode === 126 && !this.#began && stdout.bytes < 4096) {
      const text = Buffer.from(stdout.head).toString();
      if (isStartFailure(text)) return this.#startFailure(text.trim());
    }
    const killed = exitCode === null || exitCode === 137 || exitCode === 143;
    if (killed && !(await livesOn(container))) throw sandboxGone(id);
    const waitMs = exitCode === 137 ? oomWordMs : 0;
    return {
      exitCode,
      timedOut: this.#timedOut,
      flooded: this.#flooded,
      outOfMemory: exitCode !== 0 && (await oom.happened(container.id, this.#startedMs, waitMs)),
      ...{ stdout, stderr },
      durationMs: performance.now() - this.#startedMs,
    };
  }
}

const isStartFailure = (text: string): boolean =>
  /OCI runtime exec failed|unable to find user|executable file not found|unable to start container process/.test(text);

function writeInput(stream: Duplex, bytes: Uint8Array): void {
  // A command that does not read its input to the end is no failure.
  stream.once("error", () => undefined);
  stream.end(bytes);
}

/** A container that is being removed kills its commands first, and says for a moment longer that it runs. */
export async function livesOn(container: Docker.Container): Promise<boolean> {
  if (!(await isRunning(container))) return false;
  await pause(removalMs);
  return isRunning(container);
}

/** False for one that is not there, too. */
export async function isRunning(container: Docker.Container): Promise<boolean> {
  try {
    const { State } = ContainerAnswer.parse(await heard("looking at a sandbox", container.inspect()));
    return State.Running;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw daemonTrouble(error, "looking at a sandbox");
  }
}
