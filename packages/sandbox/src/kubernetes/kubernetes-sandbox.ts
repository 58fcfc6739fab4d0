/**
 * A sandbox that is a pod. Invariants: a command that runs past its limit or prints too much ends with everything in the pod but its
 * first process; an abort lets go of it (whoever took the sandbox over may already run another, which would be ended with it); a
 * connection that broke is `unavailable` while the pod runs and `gone` when it does not.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { deferred } from "../remote/deferred.ts";
import { CommandOutput } from "../shared/command-output.ts";
import { FilesByExec } from "../shared/files-by-exec.ts";
import { killScript } from "../shared/kill-script.ts";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { sizeScript } from "../shared/size-script.ts";
import { neverBegan, unfitReason } from "../shared/unfit-command.ts";
import { pause, unlessAborted, within } from "../shared/waiting.ts";
import { type ExecSocket, type ExecTarget, openExec } from "./exec-socket.ts";

export interface PodSandboxOptions {
  readonly id: string;
  readonly workdir: string;
  readonly target: ExecTarget;
  /** Number and name of the pod's own user: the only one its commands can have. */
  readonly users: readonly string[];
  /** Whether the pod runs now. @throws BoundaryError("sandbox", "unavailable") */
  readonly isRunning: () => Promise<boolean>;
}

/** A background child may hold a stream open; it is not waited for. */
const drainMs = 500;
/** From the request to end everything to the end of the connection. */
const killedMs = 10_000;

const endScript = `kill -TERM -1 2>/dev/null; n=0
while [ $n -lt 10 ] && kill -0 -1 2>/dev/null; do sleep 0.1; n=$((n+1)); done
${killScript}`;

type Cut = "time" | "flood";

export class KubernetesSandbox extends FilesByExec implements Sandbox {
  readonly id: string;
  readonly runtime = "kubernetes";
  readonly workdir: string;
  readonly #options: PodSandboxOptions;
  /** Kernel's count of processes it ended for memory, as last read. */
  #oomKills = 0;

  constructor(options: PodSandboxOptions) {
    super();
    this.id = options.id;
    this.workdir = options.workdir;
    this.#options = options;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    this.#check(request.user);
    const unfit = unfitReason(request);
    if (unfit !== null) return neverBegan(126, unfit);
    const startedAt = performance.now();
    const { stdin } = request;
    const command = wrapped(request, stdin?.length ?? null);
    const socket = await this.#open({ command, stdin: stdin !== undefined, tty: false }, signal);
    const run = new Run(socket, request);
    // A command that ends before it has read its input is none that failed.
    if (stdin !== undefined) void socket.write(stdin).catch(() => undefined);
    const { exitCode, cut } = await this.#over(run, request.timeoutMs, signal);
    return {
      exitCode: cut === null ? exitCode : null,
      timedOut: cut === "time",
      flooded: cut === "flood",
      outOfMemory: exitCode === 137 && (await this.#wasOutOfMemory(signal)),
      ...run.output.result(),
      durationMs: performance.now() - startedAt,
    };
  }

  async spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
    this.#check(request.user);
    const tty = request.tty !== undefined;
    const socket = await this.#open({ command: wrapped(request, null, request.tty), stdin: true, tty }, signal);
    return {
      stdout: socket.stdout,
      stderr: socket.stderr,
      write: (bytes) => socket.write(bytes),
      endStdin: async () => {
        if (!socket.endStdin()) socket.close();
      },
      ...(tty && {
        resize: async (columns: number, rows: number) => socket.resize(columns, rows),
      }),
      wait: async () => {
        const exitCode = await socket.status.catch((error: unknown) => this.#explain(error));
        await this.#checkEnd(exitCode);
        return { exitCode };
      },
      close: async () => {
        socket.close();
        socket.stdout.destroy();
        socket.stderr.destroy();
      },
    };
  }

  async killAll(signal: AbortSignal, user?: string): Promise<void> {
    this.#check(user);
    await this.#clear(["/bin/sh", "-c", killScript], signal);
  }

  /** Of a command and its streams; the end of its time or its output ends everything in the pod. */
  async #over(run: Run, timeoutMs: number, signal: AbortSignal): Promise<{ exitCode: number | null; cut: Cut | null }> {
    const timer = new AbortController();
    const late = pause(timeoutMs, timer.signal).then((): Cut => "time");
    try {
      const first = await unlessAborted(Promise.race([run.socket.status, late, run.flooded]), signal);
      if (typeof first === "number") {
        await run.drained();
        await this.#checkEnd(first);
        return { exitCode: first, cut: null };
      }
      await this.#endAll(run);
      return { exitCode: null, cut: first };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      return this.#explain(error);
    } finally {
      timer.abort();
      run.end();
    }
  }

  async #endAll(run: Run): Promise<void> {
    await this.#clear(["/bin/sh", "-c", endScript], AbortSignal.timeout(killedMs));
    await within(
      run.socket.status.catch(() => null),
      killedMs,
      "ending a command",
    ).catch(() => null);
    await run.drained();
  }

  /** What runs the killing is killed with the rest: its own end says nothing. */
  async #clear(command: readonly string[], signal: AbortSignal): Promise<void> {
    const socket = await this.#open({ command, stdin: false, tty: false }, signal);
    socket.stdout.resume();
    socket.stderr.resume();
    await socket.status.catch((error: unknown) => this.#explain(error).catch(() => null));
    socket.close();
    if (!(await this.#options.isRunning())) throw sandboxGone(this.id);
  }

  async #open(request: Parameters<typeof openExec>[1], signal: AbortSignal): Promise<ExecSocket> {
    try {
      return await openExec(this.#options.target, request, signal);
    } catch (error) {
      return this.#explain(error);
    }
  }

  /** @throws `gone` for a pod that no longer runs, `unavailable` for a connection that broke while it does */
  async #explain(error: unknown): Promise<never> {
    if (!(error instanceof BoundaryError) || error.code === "refused") throw error;
    if (!(await this.#options.isRunning())) throw sandboxGone(this.id, error);
    if (error.code !== "gone") throw error;
    throw new BoundaryError("sandbox", "unavailable", error.message, { cause: error, retryable: true });
  }

  /** A pod that ended takes its commands along, which looks like a signal to each of them. */
  async #checkEnd(exitCode: number): Promise<void> {
    if (exitCode === 137 && !(await this.#options.isRunning())) throw sandboxGone(this.id);
  }

  async #wasOutOfMemory(signal: AbortSignal): Promise<boolean> {
    const script =
      "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | sed -n 's/^oom_kill //p'";
    const socket = await this.#open({ command: ["/bin/sh", "-c", script], stdin: false, tty: false }, signal);
    const run = new Run(socket, { maxOutputBytes: 4096 });
    await within(socket.status, killedMs, "reading a counter").catch((error: unknown) => this.#explain(error));
    await run.drained();
    const count = Number.parseInt(Buffer.from(run.output.result().stdout.head).toString("latin1"), 10) || 0;
    const before = this.#oomKills;
    this.#oomKills = Math.max(before, count);
    return count > before;
  }

  /** A pod's commands run as its container does. */
  #check(user: string | undefined): void {
    if (user === undefined || this.#options.users.includes(user)) return;
    const own = this.#options.users.join(" or ");
    const message = `commands of a kubernetes sandbox have the pod's user (${own}), not ${user}: set the user of the whole sandbox`;
    throw new BoundaryError("sandbox", "refused", message);
  }
}

/**
 * The API runs a command in the image's folder with its variables only.
 * @param stdinBytes how much is sent: older servers can't say that it was all, so the command is told beforehand
 */
function wrapped(
  { command, cwd, environment = {} }: Pick<ExecRequest, "command" | "cwd" | "environment">,
  stdinBytes: number | null,
  tty?: SpawnRequest["tty"],
): string[] {
  const set = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const folder = cwd === undefined ? "" : 'cd -- "$2" || exit 126; ';
  const run = stdinBytes === null ? 'exec env -- "$@"' : 'head -c "$bytes" | env -- "$@"';
  const script = `bytes=$1; ${tty === undefined ? "" : sizeScript(tty)}${folder}shift 2; ${run}`;
  return ["/bin/sh", "-c", script, "sh", String(stdinBytes ?? 0), cwd ?? "", ...set, ...command];
}

/** A command's streams, capped. */
class Run {
  readonly output: CommandOutput;
  readonly flooded: Promise<Cut>;
  readonly #closed: Promise<unknown>;

  constructor(
    readonly socket: ExecSocket,
    request: Pick<ExecRequest, "maxOutputBytes" | "maxReadBytes">,
  ) {
    const { promise, resolve } = deferred<Cut>();
    this.flooded = promise;
    this.output = new CommandOutput(request, () => resolve("flood"));
    for (const name of ["stdout", "stderr"] as const) {
      socket[name].on("data", (chunk: Uint8Array) => this.output.take(name, chunk));
    }
    const over = (stream: ExecSocket["stdout"]) => new Promise((resolve) => stream.once("close", resolve));
    this.#closed = Promise.all([over(socket.stdout), over(socket.stderr)]);
  }

  async drained(): Promise<void> {
    await Promise.race([this.#closed, pause(drainMs)]);
  }

  end(): void {
    this.socket.close();
    this.socket.stdout.destroy();
    this.socket.stderr.destroy();
  }
}
