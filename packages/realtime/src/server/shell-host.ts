/** What the socket end of a shell needs from whoever opens shells, and how much of it there may be. */
import type { IncomingMessage } from "node:http";
import type { SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import type { OpenShell } from "@rolldeck/contracts/wire/shell";

/** Who asks: the handshake's request and the token given beside it. */
export interface ShellCaller {
  readonly request: IncomingMessage;
  readonly token: string | null;
}
export interface OpenedShell {
  /** A terminal. */
  readonly process: SandboxProcess;
  /** Why it may not go on, in words; null while it may. */
  objection(): Promise<string | null>;
  /** After its end, whatever ended it: lets go of it and notes who left. Never throws. */
  leave(): Promise<void>;
}
export interface ShellHost {
  /** May this caller open shells at all? */
  mayOpen(caller: ShellCaller): Promise<boolean>;
  /** @throws ShellRefusal with words for the caller; anything else is a fault of ours */
  open(asked: OpenShell, caller: ShellCaller, signal: AbortSignal): Promise<OpenedShell>;
}

/** A shell is not opened; the message is shown to whoever asked. */
export class ShellRefusal extends Error {
  override readonly name = "ShellRefusal";
}

export interface ShellLimits {
  /** Open at once on this server. */
  readonly shells: number;
  /** Of output of one. */
  readonly bytesPerSecond: number;
  /**
   * Without a key, after which one is ended. Output is no sign of a person: a forgotten `tail -f` would hold one of the few shells, and
   * its sandbox, for good.
   */
  readonly idleMs: number;
  /** Between two looks at whether it may go on. */
  readonly checkMs: number;
}
export const shellLimits: ShellLimits = { shells: 10, bytesPerSecond: 1_000_000, idleMs: 15 * 60_000, checkMs: 15_000 };
