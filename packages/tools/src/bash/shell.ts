/**
 * The shell of one rollout in its sandbox. Invariants: commands run one after another; what a command set is there for the next one,
 * on whichever worker that runs (the state is a file of the sandbox); a command is ended with all it started, or runs on because
 * its caller said so; a sandbox that is gone is never told as output.
 */

import { BoundaryError } from "@rolldeck/contracts/errors";
import { orAborted } from "@rolldeck/contracts/ports/or-aborted";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { ToolContext } from "@rolldeck/contracts/ports/tool";
import { endCommand, endShell } from "./end-command.ts";
import type { MarkFound } from "./marked-stream.ts";
import { type CommandMode, type LinkFacts, RunningCommand, ShellLink } from "./shell-link.ts";
import { type ShellSettings, shellSettings } from "./shell-settings.ts";

/** Output past which a command is ended. */
const floodBytes = 1024 * 1024 * 1024;
/** How often a running command is looked at for a limit that is no timer of its own. */
const lookMs = 250;
/** The end of a command that was killed is heard at once, or not at all. */
const killedMs = 3000;

/** Why a wait for a command is over. */
export type WaitEnd = "ended" | "time" | "quiet" | "flood";

/** How a command came to its end; exit code null: the shell went away with it. */
export type CommandEnd = Omit<MarkFound, "exitCode"> & { readonly exitCode: number | null };

export interface Started {
  readonly running: RunningCommand;
  /** A command of an earlier shell was ended when this one began. */
  readonly endedLeftover: boolean;
}

export class Shell {
  #link: ShellLink | null = null;
  #facts: LinkFacts | null = null;
  /** One that its caller left running. */
  #current: RunningCommand | null = null;
  #busy: Promise<unknown> = Promise.resolve();

  constructor(
    readonly sandbox: Sandbox,
    readonly settings: ShellSettings,
    readonly now: () => number = () => performance.now(),
  ) {}

  /** The command that was left running, or null. */
  get current(): RunningCommand | null {
    return this.#current?.isOver === false ? this.#current : null;
  }

  /** The command that was last left running, though it may have ended since; it is then forgotten. */
  takeCurrent(): RunningCommand | null {
    const current = this.#current;
    if (current?.isOver) this.#current = null;
    return current;
  }

  /** Sub-agents share their rollout's shell: their calls wait for each other. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#busy;
    const mine = before.then(work, work);
    this.#busy = mine.catch(() => {});
    return mine;
  }

  /** @throws BoundaryError("sandbox"), BoundaryError("tool", "bad_image") */
  async start(text: string, mode: CommandMode, signal: AbortSignal): Promise<Started> {
    const { link, endedLeftover } = await this.#open(signal);
    const running = await this.#run(link, text, mode);
    this.#current = running;
    return { running, endedLeftover };
  }

  /** Until it ended, ran for `untilMs` on our clock, printed nothing for `quietMs`, or too much. */
  async wait(
    running: RunningCommand,
    limits: { readonly untilMs: number; readonly quietMs?: number },
    signal: AbortSignal,
  ): Promise<WaitEnd> {
    const from = this.now();
    for (;;) {
      if (running.isOver) return "ended";
      if (running.allBytes > floodBytes) return "flood";
      const now = this.now();
      if (now >= limits.untilMs) return "time";
      const quietFrom = Math.max(running.lastOutputAtMs, from);
      if (limits.quietMs !== undefined && now - quietFrom >= limits.quietMs) return "quiet";
      await this.#endedWithin(running, Math.min(lookMs, limits.untilMs - now), signal);
    }
  }

  /** How a command that is over ended. @throws BoundaryError("sandbox") when its sandbox went away */
  async endOf(running: RunningCommand): Promise<CommandEnd> {
    const found = await running.ended;
    if (this.#current === running) this.#current = null;
    if (found !== null) return found;
    const link = this.#link;
    this.#link = null;
    await link?.whyOver();
    await link?.close();
    return { exitCode: null, stateKept: false, folder: null };
  }

  /** Ends a command with all it started. @returns whether earlier background jobs had to go, too */
  async stop(running: RunningCommand, signal: AbortSignal): Promise<{ everything: boolean }> {
    const { user } = this.settings;
    const facts = this.#facts;
    let everything = true;
    if (running.pid !== null && facts !== null) {
      const ids = { pid: running.pid, supervisorPid: facts.supervisorPid };
      ({ everything } = await endCommand(this.sandbox, { ...ids, ...(user !== undefined && { user }) }, signal));
    } else await this.sandbox.killAll(signal, user);
    if (!running.isOver) await this.#endedWithin(running, killedMs, signal);
    if (!running.isOver) await this.#drop();
    if (this.#current === running) this.#current = null;
    return { everything };
  }

  /** A signal for the command's process group. */
  async signalCommand(running: RunningCommand, name: "INT" | "TSTP", signal: AbortSignal): Promise<void> {
    if (running.pid !== null) await this.#exec(["kill", `-${name}`, "--", `-${running.pid}`], undefined, signal);
  }

  /** For the command's stdin. @returns false when nobody reads it */
  async write(text: string, signal: AbortSignal): Promise<boolean> {
    const folder = this.#facts?.folder ?? "";
    const script = 'exec 5<> "$1/in" && exec timeout 1 cat >&5';
    const exitCode = await this.#exec(["bash", "--noprofile", "--norc", "-c", script, "bash", folder], text, signal);
    return exitCode === 0;
  }

  /** The command's stdin ends. */
  async endInput(signal: AbortSignal): Promise<void> {
    if (this.#facts !== null) await this.#exec(["kill", "-USR1", String(this.#facts.supervisorPid)], undefined, signal);
  }

  /**
   * A shell as at the start; all that its commands left running is ended.
   * @returns whether all else in the sandbox had to go, too
   */
  async restart(signal: AbortSignal): Promise<{ everything: boolean }> {
    const ended = await this.#endAll(signal);
    await this.abandon();
    const { link, isNew } = await this.#open(signal);
    if (isNew) return ended;
    await link.forget();
    await this.#startUp(link, signal);
    return ended;
  }

  async #endAll(signal: AbortSignal): Promise<{ everything: boolean }> {
    const { user } = this.settings;
    try {
      if (this.#facts === null) await this.#open(signal);
      if (this.#facts !== null)
        return await endShell(this.sandbox, { ...this.#facts, ...(user !== undefined && { user }) }, signal);
    } catch (error) {
      // Where what runs leaves no room even for a shell, none can say what to end.
      if (signal.aborted || (error instanceof BoundaryError && error.code === "gone")) throw error;
    }
    await this.sandbox.killAll(signal, user);
    return { everything: true };
  }

  /** The call that used the link was cut short: what state it is in is not known. */
  async abandon(): Promise<void> {
    this.#current = null;
    await this.#drop();
  }

  async #open(signal: AbortSignal): Promise<{ link: ShellLink; endedLeftover: boolean; isNew: boolean }> {
    if (this.#link?.isOpen) return { link: this.#link, endedLeftover: false, isNew: false };
    if (this.#link !== null) {
      const link = this.#link;
      this.#link = null;
      await link.whyOver();
    }
    const { link, facts } = await ShellLink.open(this.sandbox, this.settings, this.now, signal);
    this.#link = link;
    this.#facts = facts;
    if (facts.isNew) await this.#startUp(link, signal);
    return { link, endedLeftover: facts.endedLeftover, isNew: facts.isNew };
  }

  async #startUp(link: ShellLink, signal: AbortSignal): Promise<void> {
    const { startup, timeoutMs } = this.settings;
    if (startup === undefined || this.settings.stateless) return;
    const running = await this.#run(link, startup, "empty");
    const end = await this.wait(running, { untilMs: this.now() + timeoutMs }, signal);
    if (end !== "ended") await this.stop(running, signal);
    await this.endOf(running);
  }

  async #run(link: ShellLink, text: string, mode: CommandMode): Promise<RunningCommand> {
    const running = new RunningCommand(text, this.settings.maxOutputBytes, this.now);
    await link.run(running, mode);
    return running;
  }

  async #endedWithin(running: RunningCommand, limitMs: number, signal: AbortSignal): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.max(0, limitMs));
    });
    try {
      await orAborted(Promise.race([running.ended, timeUp]), signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async #exec(command: readonly string[], stdin: string | undefined, signal: AbortSignal): Promise<number | null> {
    const { user } = this.settings;
    const input = stdin === undefined ? {} : { stdin: Buffer.from(stdin, "utf8") };
    const request = { command, timeoutMs: 10_000, ...input, ...(user !== undefined && { user }) };
    return (await this.sandbox.exec(request, signal)).exitCode;
  }

  async #drop(): Promise<void> {
    const link = this.#link;
    this.#link = null;
    await link?.close();
  }
}

// Weak: a shell goes with its rollout; what runs goes with the sandbox.
const shells = new WeakMap<object, Shell>();

/** The shell of this call's sandbox. @throws BoundaryError("infrastructure", "no_sandbox") */
export function shellOf(context: ToolContext): Shell {
  const { sandbox } = context;
  if (sandbox === undefined)
    throw new BoundaryError("infrastructure", "no_sandbox", "the shell needs a sandbox, and this task has none");
  const owner = context.rollout ?? sandbox;
  const known = shells.get(owner);
  if (known?.sandbox.id === sandbox.id) return known;
  const shell = new Shell(sandbox, shellSettings(context.instance));
  // The connection goes with this worker's part of the rollout; whoever goes on opens another one.
  context.ended?.addEventListener("abort", () => void shell.abandon(), { once: true });
  shells.set(owner, shell);
  return shell;
}

/** Room that ending a command and answering need before the call's own limit. */
const endingMs = 3500;

/** Milliseconds a command of this call may take: what was asked for, while there is time to end it and to answer. */
export function commandLimitMs(context: ToolContext, wantedMs: number): number {
  const leftMs = context.deadlineMs - Date.now();
  return Math.min(wantedMs, Math.max(leftMs - endingMs, leftMs / 2, 100));
}

/** The work of one call on its shell; a call that is cut short leaves no link behind that it knows nothing of. */
export function withShell<T>(context: ToolContext, work: (shell: Shell) => Promise<T>): Promise<T> {
  const shell = shellOf(context);
  return shell.exclusively(async () => {
    context.signal.throwIfAborted();
    try {
      return await work(shell);
    } catch (error) {
      if (context.signal.aborted) await shell.abandon();
      throw error;
    }
  });
}
