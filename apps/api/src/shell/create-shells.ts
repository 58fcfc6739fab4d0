/**
 * Shells in sandboxes. Invariants: every opening asks anew who it is for and whether the sandbox is there and of that run; the log has
 * who opened it before anything runs, and that they left, whatever ended it.
 */
import { randomBytes } from "node:crypto";
import { isThere } from "@rolldeck/contracts/api/sandboxes";
import { BoundaryError, NotFoundError } from "@rolldeck/contracts/errors";
import type { Sandbox, SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import { type SandboxRuntimeName, sandboxRuntimes } from "@rolldeck/contracts/run-config";
import type { OpenShell } from "@rolldeck/contracts/wire/shell";
import { logShell } from "@rolldeck/db/hot/sandboxes";
import { readSandbox } from "@rolldeck/db/reads/read-sandboxes";
import { type OpenedShell, type ShellCaller, type ShellHost, ShellRefusal } from "@rolldeck/realtime/server/shell-host";
import type { Pool } from "pg";
import { z } from "zod";
import type { Identify } from "../auth/identify.ts";
import { mayWrite, principalWords } from "../principal.ts";
import { endShell, startShell } from "./shell-command.ts";

export interface ShellOptions {
  readonly pool: Pool;
  readonly identify: Identify;
  readonly runtime: (name: SandboxRuntimeName) => Promise<SandboxRuntime>;
  readonly onError: (error: unknown) => void;
}

/** For the start of a shell, which goes on where whoever asked for it is gone: one that is begun is ended by its mark. */
const startMs = 15_000;
/** For the end of a shell, which whoever opened it does not wait for. */
const endMs = 10_000;

export function createShells(options: ShellOptions): ShellHost {
  const allowed = async ({ request, token }: ShellCaller) => {
    const principal = await options.identify(request, token);
    return principal !== null && mayWrite(principal) ? principal : null;
  };
  return {
    mayOpen: async (caller) => (await allowed(caller)) !== null,
    async open(asked, caller, signal) {
      const principal = await allowed(caller);
      if (!principal) throw new ShellRefusal("you are signed in no more, or may not change things");
      const { pool, onError } = options;
      const sandbox = await attach(options, asked, signal);
      const by = principalWords(principal);
      const log = (action: "opened" | "closed") => logShell(pool, { sandboxId: asked.sandboxId, action, by });
      if (!(await log("opened"))) throw new ShellRefusal("the sandbox was closed just now");
      const left = () => log("closed").then(() => undefined, onError);
      const shell = await spawn(sandbox, asked, onError).catch(async (error: unknown) => {
        await left();
        throw refusalOf(error);
      });
      return {
        process: shell.process,
        async objection() {
          if ((await allowed(caller)) === null) return "you are signed in no more";
          const { state } = await readSandbox(pool, asked.sandboxId);
          return isThere({ state }) ? null : `the sandbox is ${state}`;
        },
        async leave() {
          await shell.end();
          await left();
        },
      };
    },
  };
}

/** @throws ShellRefusal */
async function attach({ pool, runtime }: ShellOptions, asked: OpenShell, signal: AbortSignal): Promise<Sandbox> {
  try {
    const { runId, state, runtime: name } = await readSandbox(pool, asked.sandboxId);
    if (runId !== asked.runId) throw new ShellRefusal("the sandbox is of another run");
    if (!isThere({ state }))
      throw new ShellRefusal(`the sandbox is ${state}: a shell opens in one that is open or kept`);
    const made = await runtime(z.enum(sandboxRuntimes).parse(name));
    return await made.attach(asked.sandboxId, signal);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** What the caller may know; anything else stays a fault of ours. */
function refusalOf(error: unknown): unknown {
  if (error instanceof NotFoundError) return new ShellRefusal(error.message, { cause: error });
  if (error instanceof BoundaryError && error.boundary === "sandbox")
    return new ShellRefusal(
      error.code === "gone" ? "the sandbox is not there any more" : `the sandbox can't be reached: ${error.message}`,
      { cause: error },
    );
  return error;
}

async function spawn(
  sandbox: Sandbox,
  { columns, rows }: OpenShell,
  onError: (error: unknown) => void,
): Promise<Pick<OpenedShell, "process"> & { end(): Promise<void> }> {
  const mark = randomBytes(12).toString("hex");
  const endMarked = () =>
    endAll(sandbox, mark).catch((error: unknown) => {
      // A sandbox that is gone took its shells along.
      if (!(error instanceof BoundaryError && error.code === "gone")) onError(error);
    });
  const late = new AbortController();
  const unavailable = new BoundaryError("sandbox", "unavailable", `no shell in ${startMs / 1000} s`);
  const timer = setTimeout(() => late.abort(unavailable), startMs);
  try {
    const process = await sandbox.spawn({ ...startShell(mark), tty: { columns, rows } }, late.signal);
    return { process, end: () => process.close().then(endMarked) };
  } catch (error) {
    // It may have begun all the same.
    await endMarked();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Not by `exec`, whose timeout would end the agent's own processes.
 * @throws BoundaryError("sandbox")
 */
async function endAll(sandbox: Sandbox, mark: string): Promise<void> {
  const signal = AbortSignal.timeout(endMs);
  const sweeper = await sandbox.spawn(endShell(mark), signal);
  const cut = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  const drain = async (stream: AsyncIterable<Uint8Array>) => {
    for await (const _ of stream);
  };
  try {
    await sweeper.endStdin();
    await Promise.race([Promise.all([drain(sweeper.stdout), drain(sweeper.stderr), sweeper.wait()]), cut]);
  } finally {
    await sweeper.close();
  }
}
