/**
 * A sandbox made of namespaces. Invariants: a command that runs past its limit, prints too much or is aborted ends with everything
 * its user started; output past the caps is read and dropped; a sandbox that went away is `gone`, never a command that failed.
 */
import { once, setMaxListeners } from "node:events";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecRequest, ExecResult, Sandbox, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { CommandOutput } from "../shared/command-output.ts";
import { FilesByExec } from "../shared/files-by-exec.ts";
import { killedWord, killScript, stuck, stuckWord } from "../shared/kill-script.ts";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { neverBegan, unfitReason } from "../shared/unfit-command.ts";
import { pause, Turns } from "../shared/waiting.ts";
import { oomKills } from "./cgroups.ts";
import { type Entered, enterSandbox } from "./enter-sandbox.ts";
import { enteredProcess } from "./entered-process.ts";
import { type HeldRecord, isAlive } from "./held-record.ts";

/** A background child may hold a stream open; it is not waited for. */
const drainMs = 500;
/** What was killed ends at once; what does not is let go. */
const killedMs = 5000;

/** Of ending everything, where another process asks for it at the same time and they end each other. */
const clearTries = 5;

/** Ends a sandbox and makes it anew. @throws BoundaryError("sandbox"), the signal's reason */
export type Remake = (record: HeldRecord, signal: AbortSignal) => Promise<HeldRecord>;

export class ProcessSandbox extends FilesByExec implements Sandbox {
  readonly runtime = "process";

  /** Two that end everything would end each other first. */
  readonly #clearing = new Turns();

  #record: HeldRecord;
  readonly #remake: Remake;

  constructor(record: HeldRecord, remake: Remake) {
    super();
    this.#record = record;
    this.#remake = remake;
  }

  get record(): HeldRecord {
    return this.#record;
  }

  get id(): string {
    return this.record.id;
  }
  get workdir(): string {
    return this.record.workdir;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    await this.#check(request.user, signal);
    // One signal may stop any number of things.
    setMaxListeners(0, signal);
    const unfit = unfitReason(request);
    if (unfit !== null) return neverBegan(126, unfit);
    const startedAt = performance.now();
    const oomBefore = await oomKills(this.record.cgroups);
    const entered = enterSandbox(this.record, { ...request, counted: true });
    const run = new Run(entered, request, () => this.#clear());
    entered.stdin.end(request.stdin ?? new Uint8Array(0));
    const { started, exitCode, timedOut, flooded } = await run.over(signal);
    if (!(await isAlive(this.record.first))) throw sandboxGone(this.id);
    const { stdout, stderr } = run.output.result();
    if (!started && !timedOut && !flooded) refuseStart(Buffer.from(stderr.head).toString("latin1"));
    return {
      exitCode: timedOut || flooded ? null : started ? exitCode : 126,
      ...{ timedOut, flooded },
      outOfMemory: (await oomKills(this.record.cgroups)) > oomBefore,
      ...{ stdout, stderr },
      durationMs: performance.now() - startedAt,
    };
  }

  async spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess> {
    await this.#check(request.user, signal);
    const unfit = unfitReason(request);
    if (unfit !== null) throw new BoundaryError("sandbox", "refused", unfit);
    const entered = enterSandbox(this.record, { ...request, counted: true });
    const talk = enteredProcess(entered, request.tty !== undefined, async () => {
      if (!(await isAlive(this.record.first))) throw sandboxGone(this.id);
    });
    const stop = (): void => void talk.close();
    signal.addEventListener("abort", stop, { once: true });
    entered.child.once("close", () => signal.removeEventListener("abort", stop));
    return talk;
  }

  async killAll(signal: AbortSignal, user?: string): Promise<void> {
    await this.#check(user, signal);
    await this.#clear();
  }

  /** Its namespaces end with all that is in them, and new ones take their place. */
  async reset(signal: AbortSignal): Promise<void> {
    this.#record = await this.#remake(this.#record, signal);
  }

  /** Everything in it but process 1 and who says so. */
  #clear(): Promise<void> {
    return this.#clearing.take(() => this.#endAll());
  }

  async #endAll(): Promise<void> {
    for (let tries = 0; tries < clearTries; tries += 1) {
      const entered = enterSandbox(this.record, { command: ["/bin/sh", "-c", killScript], cwd: "/", counted: false });
      const closed = once(entered.child, "close");
      entered.stdin.end();
      entered.stderr.resume();
      let said = "";
      entered.stdout.on("data", (bytes: Buffer) => {
        said = (said + bytes.toString("latin1")).slice(-100);
      });
      await entered.ended;
      await closed;
      if (said.includes(killedWord) || !(await isAlive(this.record.first))) return;
      if (said.includes(stuckWord)) break;
    }
    throw stuck(this.id);
  }

  async #check(user: string | undefined, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (user !== undefined && !["nobody", String(this.record.uid ?? process.getuid?.())].includes(user)) {
      throw new BoundaryError(
        "sandbox",
        "refused",
        `a process sandbox has one user, nobody; ${user} is none of its own`,
      );
    }
    if (!(await isAlive(this.record.first))) throw sandboxGone(this.id);
  }
}

/** @throws unless the sandbox was too full to start anything, which is what its user did to it */
function refuseStart(words: string): void {
  if (/Resource temporarily unavailable|Cannot fork|Cannot allocate memory/.test(words)) return;
  const why = words.trim().slice(0, 500);
  throw new BoundaryError("sandbox", "unavailable", `a command could not be started in the sandbox: ${why}`, {
    retryable: true,
  });
}

interface RunEnd {
  readonly started: boolean;
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  readonly flooded: boolean;
}

/** One command to its end. */
class Run {
  readonly output: CommandOutput;
  #cut: "time" | "flood" | null = null;
  #cutShort: (why: "time" | "flood") => void = () => {};
  readonly #closed: Promise<void>;

  constructor(
    readonly entered: Entered,
    readonly request: ExecRequest,
    readonly clear: () => Promise<void>,
  ) {
    this.output = new CommandOutput(request, () => this.#cutShort("flood"));
    for (const name of ["stdout", "stderr"] as const) {
      entered[name].on("data", (chunk: Uint8Array) => this.output.take(name, chunk));
    }
    this.#closed = new Promise((resolve) => entered.child.once("close", () => resolve()));
  }

  async over(signal: AbortSignal): Promise<RunEnd> {
    let timer: NodeJS.Timeout | undefined;
    let onAbort = () => {};
    const cut = new Promise<"time" | "flood">((resolve, reject) => {
      this.#cutShort = resolve;
      timer = setTimeout(() => resolve("time"), this.request.timeoutMs);
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      const first = await Promise.race([this.entered.ended, cut]);
      if (typeof first === "string") return await this.#end(first);
      await this.#drained();
      return { ...first, timedOut: false, flooded: false };
    } catch (error) {
      if (signal.aborted) await this.#end("time");
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #end(why: "time" | "flood"): Promise<RunEnd> {
    this.#cut = why;
    await this.clear();
    await Promise.race([this.entered.ended, pause(killedMs)]);
    await this.#drained();
    return { started: true, exitCode: null, timedOut: this.#cut === "time", flooded: this.#cut === "flood" };
  }

  async #drained(): Promise<void> {
    await Promise.race([this.#closed, pause(drainMs)]);
    this.entered.stdout.destroy();
    this.entered.stderr.destroy();
  }
}
