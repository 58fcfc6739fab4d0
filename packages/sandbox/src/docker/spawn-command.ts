/**
 * A command that is talked to while it runs: input and outputs as they come, with back-pressure in both directions. What nobody
 * reads is not read from the daemon either, so memory stays bounded by the streams' own marks.
 */
import { type Duplex, PassThrough } from "node:stream";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { sizeScript } from "../shared/size-script.ts";
import { unfitReason } from "../shared/unfit-command.ts";
import { pause, roomIn, unlessAborted } from "../shared/waiting.ts";
import { ExecAnswer } from "./answers.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked, daemonTrouble, heard, refused } from "./daemon-trouble.ts";
import { execOptions, livesOn } from "./exec-command.ts";
import { OutputFrames } from "./output-frames.ts";

/** @throws BoundaryError("sandbox"), or the signal's reason */
export async function spawnCommand(
  scene: ContainerScene,
  request: SpawnRequest,
  signal: AbortSignal,
): Promise<SandboxProcess> {
  signal.throwIfAborted();
  const unfit = unfitReason(request);
  if (unfit !== null) throw refused(unfit);
  return unlessAborted(start(scene, request, signal), signal);
}

async function start(scene: ContainerScene, request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
  const tty = request.tty;
  const command = tty === undefined ? request.command : inTerminal(request.command, tty);
  const exec = await asked(
    "starting a command",
    scene.container.exec({
      ...execOptions(scene, { ...request, command }),
      AttachStdin: true,
      Tty: tty !== undefined,
    }),
  );
  const stream = await asked(
    "starting a command",
    exec.start({ hijack: true, stdin: true, Tty: tty !== undefined, Detach: false }),
    { late: (unwanted) => unwanted.destroy() },
  );
  const process = new DockerProcess(scene, exec, stream, tty !== undefined);
  const stop = (): void => void process.close();
  signal.addEventListener("abort", stop, { once: true });
  stream.once("close", () => signal.removeEventListener("abort", stop));
  if (signal.aborted) await process.close();
  return process;
}

const inTerminal = (command: readonly string[], size: NonNullable<SpawnRequest["tty"]>): string[] => [
  ...["/bin/sh", "-c", `${sizeScript(size)}exec "$@"`, "sh"],
  ...command,
];

class DockerProcess implements SandboxProcess {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly #scene: ContainerScene;
  readonly #exec: Docker.Exec;
  readonly #stream: Duplex;
  readonly #ended: Promise<Error | null>;
  #letGo = false;
  resize?: (columns: number, rows: number) => Promise<void>;

  constructor(scene: ContainerScene, exec: Docker.Exec, stream: Duplex, tty: boolean) {
    this.#scene = scene;
    this.#exec = exec;
    this.#stream = stream;
    for (const output of [this.stdout, this.stderr]) output.on("error", () => undefined);
    if (tty) this.resize = (columns, rows) => this.#resize(columns, rows);
    this.#ended = this.#pump(tty);
  }

  /** Hands outputs on as they are read; resolves to what broke the stream, or null. */
  async #pump(tty: boolean): Promise<Error | null> {
    const frames = new OutputFrames();
    let trouble: Error | null = null;
    try {
      for await (const chunk of this.#stream) {
        const full: PassThrough[] = [];
        if (tty) {
          if (!this.stdout.write(chunk)) full.push(this.stdout);
        } else {
          frames.push(chunk, (name, bytes) => {
            if (!this[name].write(bytes)) full.push(this[name]);
          });
        }
        for (const output of full) await drained(output);
      }
    } catch (error) {
      trouble = error instanceof Error ? error : new Error(String(error));
    }
    this.stdout.end();
    this.stderr.end();
    return this.#letGo ? null : trouble;
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#stream.destroyed || this.#stream.writableEnded) {
        reject(new BoundaryError("sandbox", "unavailable", "the command's input is closed"));
        return;
      }
      this.#stream.write(bytes, (error) => (error ? reject(daemonTrouble(error, "writing to a command")) : resolve()));
    });
  }

  async endStdin(): Promise<void> {
    if (!this.#stream.destroyed && !this.#stream.writableEnded) this.#stream.end();
  }

  /** A terminal that is not there yet is tried again for a moment: the command may not have begun. */
  async #resize(columns: number, rows: number): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        await heard("resizing a terminal", this.#exec.resize({ w: columns, h: rows }));
        return;
      } catch (error) {
        if (this.#stream.destroyed || this.#stream.readableEnded) return;
        if (tries >= 5) throw daemonTrouble(error, "resizing a terminal");
        await pause(20);
      }
    }
  }

  async wait(): Promise<{ readonly exitCode: number | null }> {
    const trouble = await this.#ended;
    if (trouble !== null) throw daemonTrouble(trouble, "reading a command's output");
    for (let waitMs = 5; ; waitMs = Math.min(250, waitMs * 2)) {
      const { Running, ExitCode } = ExecAnswer.parse(await asked("ending a command", this.#exec.inspect()));
      if (!Running) return { exitCode: await this.#checked(ExitCode) };
      if (this.#letGo) return { exitCode: null };
      await pause(waitMs);
    }
  }

  /** A sandbox that ended took the command with it: that is no exit of the command. */
  async #checked(exitCode: number | null): Promise<number | null> {
    // 126: it was taken away while the command was being started.
    const killed = exitCode === null || exitCode === 126 || exitCode === 137 || exitCode === 143;
    if (killed && !(await livesOn(this.#scene.container))) throw sandboxGone(this.#scene.id);
    return exitCode;
  }

  async close(): Promise<void> {
    this.#letGo = true;
    this.#stream.destroy();
    this.stdout.end();
    this.stderr.end();
    // Whoever waits for room in them must not wait for ever.
    this.stdout.emit("drain");
    this.stderr.emit("drain");
  }
}

const drained = (output: PassThrough): Promise<void> => (output.writableNeedDrain ? roomIn(output) : Promise.resolve());
