/** A shell as one tool: a command, its output and its exit code. A command that takes too long is ended with all it started. */
import type { ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { z } from "zod";
import { defineTool } from "../define-tool.ts";
import { CommandText } from "./command-text.ts";
import { type CommandEnd, commandLimitMs, type Shell, type WaitEnd, withShell } from "./shell.ts";
import type { RunningCommand } from "./shell-link.ts";

const Arguments = z.strictObject({
  command: CommandText.describe("What bash is to run; several lines are fine. Left out only with restart").optional(),
  timeout_s: z.number().min(0.1).max(3600).describe("Seconds it may take").optional(),
  restart: z
    .boolean()
    .describe("End all that earlier commands left running and begin with a new shell that knows nothing of them")
    .optional(),
});
type Arguments = z.infer<typeof Arguments>;

export const bash = defineTool({
  name: "bash",
  description:
    "Run a command in a bash shell in your sandbox. The working directory, variables, functions, aliases and options stay as a " +
    "command left them; there is no terminal and no input. A command that runs past its limit is ended with all it started. " +
    "Put what must go on running in the background: server > log.txt 2>&1 &",
  arguments: Arguments,
  idempotent: false,
  call: async (args, context) => {
    if (args.command === undefined && args.restart !== true)
      return failure("bad_arguments", "bash takes command, unless restart is true");
    return withShell(context, (shell) => call(shell, args, context));
  },
});

async function call(shell: Shell, args: Arguments, context: ToolContext): Promise<ToolOutcome> {
  const notes: string[] = [];
  if (args.restart === true) {
    const { everything } = await shell.restart(context.signal);
    const restarted = "[the shell was restarted]";
    if (args.command === undefined) return { output: everything ? `${restarted}\n${clearedNote}` : restarted };
    if (everything) notes.push(clearedNote);
  }
  if (shell.current !== null) return failure("busy", busyWords(context));
  try {
    return await run(shell, args.command ?? "", { args, context, notes });
  } catch (error) {
    // No later call goes on with this command: the next one begins with a new connection, and ends it.
    await shell.abandon();
    throw error;
  }
}

const clearedNote = "[everything else that ran in the sandbox was ended, too]";

function busyWords({ agent }: ToolContext): string {
  return agent.tools?.includes("execute_bash")
    ? "a command that execute_bash started still runs in this shell; end it there, or use restart"
    : "a command of an earlier call still runs in this shell; restart ends it";
}

interface Asked {
  readonly args: Arguments;
  readonly context: ToolContext;
  readonly notes: readonly string[];
}

async function run(shell: Shell, command: string, { args, context, notes }: Asked): Promise<ToolOutcome> {
  const { signal } = context;
  const limitMs = commandLimitMs(
    context,
    args.timeout_s === undefined ? shell.settings.timeoutMs : args.timeout_s * 1000,
  );
  const { running, endedLeftover } = await shell.start(
    command,
    shell.settings.stateless ? "stateless" : "empty",
    signal,
  );
  const why = await shell.wait(running, { untilMs: shell.now() + limitMs }, signal);
  const stopped = why === "ended" ? null : await shell.stop(running, signal);
  const end = stopped === null ? await shell.endOf(running) : null;
  const left = endedLeftover ? ["[a command that still ran in this shell was ended]"] : [];
  return outcome(running, [...notes, ...left, ...endNotes(end, why, limitMs, stopped?.everything === true)]);
}

/** What the model has to know besides the output. */
function endNotes(end: CommandEnd | null, why: WaitEnd, limitMs: number, everything: boolean): string[] {
  if (end === null) {
    const reason = why === "flood" ? "printed more than 1 GiB" : `timed out after ${Math.round(limitMs / 100) / 10} s`;
    const what = everything
      ? "everything in the sandbox that it could have started, background jobs too,"
      : "all it started";
    return [`[${reason}; the command and ${what} was ended]`];
  }
  if (end.exitCode === null)
    return ["[the shell was ended; the next command starts in a new one, as the one before this left it]"];
  const notes = end.exitCode === 0 ? [] : [`[exit code ${end.exitCode}]`];
  if (!end.stateKept) notes.push("[the shell is as it was before this command: its state could not be kept]");
  return notes;
}

function outcome(running: RunningCommand, notes: readonly string[]): ToolOutcome {
  const { text, wholeBytes } = running.takeOutput().text();
  const end = notes.join("\n");
  const output =
    text === "" ? end || "[no output]" : end === "" ? text : `${text}${text.endsWith("\n") ? "" : "\n"}${end}`;
  return { output, ...(wholeBytes !== null && { wholeBytes }) };
}

const failure = (code: string, message: string): ToolOutcome => ({ output: message, error: { code, message } });
