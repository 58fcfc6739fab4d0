/**
 * A shell in the manner of OpenHands, with the words its agents are trained on: a command that prints nothing for a while or
 * reaches its limit goes on running, and later calls wait for it, give it input or interrupt it.
 */
import type { ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { z } from "zod";
import { defineTool } from "../define-tool.ts";
import { textStart } from "../text-place.ts";
import { CommandText } from "./command-text.ts";
import { commandLimitMs, type Shell, type WaitEnd, withShell } from "./shell.ts";
import type { RunningCommand } from "./shell-link.ts";

const Arguments = z.strictObject({
  command: CommandText.describe(
    "The bash command. Empty: wait for more output of the command that still runs. `C-c`, `C-d`, `C-z`: keys for it",
  ),
  is_input: z
    .union([z.boolean(), z.enum(["true", "false"])])
    .describe("True: the text is input for the command that still runs, not a new one")
    .optional(),
  timeout: z
    .number()
    .min(0.1)
    .max(3600)
    .describe("Seconds after which it is left running and you get its output")
    .optional(),
});
type Arguments = z.infer<typeof Arguments>;

export const executeBash = defineTool({
  name: "execute_bash",
  description:
    "Execute a bash command in a persistent shell session: the working directory and variables stay between calls. One command at " +
    "a time; chain several with && or ;. A command without new output for 30 seconds, or at its timeout, goes on running: send an " +
    "empty command to wait for more, text with is_input for its input, or C-c to interrupt it. Run servers in the background: " +
    "python3 app.py > server.log 2>&1 &",
  arguments: Arguments,
  idempotent: false,
  call: (args, context) => withShell(context, (shell) => call(shell, args, context)),
});

type Key = "C-c" | "C-d" | "C-z";
const isKey = (text: string): text is Key => text === "C-c" || text === "C-d" || text === "C-z";

async function call(shell: Shell, args: Arguments, context: ToolContext): Promise<ToolOutcome> {
  const text = args.command.trim();
  const isInput = args.is_input === true || args.is_input === "true";
  const left = shell.takeCurrent();
  if (left === null) {
    if (text === "") return plain("ERROR: No previous running command to retrieve logs from.");
    if (isInput || isKey(text)) return plain("ERROR: No previous running command to interact with.");
    return runNew(shell, args, context);
  }
  if (left.isOver) {
    // It ended between two calls: nobody has seen that yet.
    if (text === "" || isInput || isKey(text))
      return report(shell, left, "ended", { args, continued: true, limitMs: 0 });
    return runNew(shell, args, context);
  }
  if (text !== "" && !isInput && !isKey(text)) return notExecuted(left, text);
  if (isKey(text)) await pressKey(shell, left, text, context.signal);
  else if (text !== "" && !(await shell.write(`${args.command}\n`, context.signal)))
    return plain("ERROR: The previous command does not read its input.");
  return waitAndReport(shell, left, { args, context, continued: true, key: isKey(text) ? text : null });
}

async function runNew(shell: Shell, args: Arguments, context: ToolContext): Promise<ToolOutcome> {
  const { running } = await shell.start(args.command, shell.settings.stateless ? "stateless" : "open", context.signal);
  return waitAndReport(shell, running, { args, context, continued: false, key: null });
}

interface Waiting {
  readonly args: Arguments;
  readonly context: ToolContext;
  readonly continued: boolean;
  readonly key: Key | null;
}

async function waitAndReport(shell: Shell, running: RunningCommand, waiting: Waiting): Promise<ToolOutcome> {
  const { args, context, key } = waiting;
  const { timeoutMs, quietMs } = shell.settings;
  // A named limit is waited for in silence, too; what a key does shows at once or not at all.
  const wantedMs = args.timeout !== undefined ? args.timeout * 1000 : key === null ? timeoutMs : keyMs;
  const limitMs = commandLimitMs(context, wantedMs);
  const quiet = args.timeout === undefined ? { quietMs } : {};
  const why = await shell.wait(running, { untilMs: shell.now() + limitMs, ...quiet }, context.signal);
  if (why === "flood") await shell.stop(running, context.signal);
  return report(shell, running, why, { args, continued: waiting.continued, key, limitMs });
}

/** How long a key's effect is waited for. */
const keyMs = 3000;

async function pressKey(shell: Shell, running: RunningCommand, key: Key, signal: AbortSignal): Promise<void> {
  if (key === "C-d") await shell.endInput(signal);
  // There is no terminal to give a stopped command back to: it would stay for ever.
  else await shell.signalCommand(running, "INT", signal);
}

const advice =
  "You may wait longer to see additional output by sending empty command '', send other commands to interact with the current " +
  'process, send keys ("C-c", "C-z", "C-d") to interrupt/kill the previous command before sending your new command, or use the ' +
  "timeout parameter in execute_bash for future commands.";

interface Reported {
  readonly args: Arguments;
  readonly continued: boolean;
  readonly limitMs: number;
  readonly key?: Key | null;
}

async function report(shell: Shell, running: RunningCommand, why: WaitEnd, told: Reported): Promise<ToolOutcome> {
  const prefix = told.continued ? "[Below is the output of the previous command.]\n" : "";
  if (why === "ended") {
    const { exitCode, folder, stateKept } = await shell.endOf(running);
    shell.takeCurrent();
    if (exitCode === null)
      return withOutput(running, prefix, "[The shell was ended; the next command starts in a new one.]");
    const sent = told.key ? ` CTRL+${told.key.slice(-1).toUpperCase()} was sent.` : "";
    const lines = [`[The command completed with exit code ${exitCode}.${sent}]`];
    if (folder !== null) lines.push(`[Current working directory: ${folder}]`);
    if (!stateKept && !sent) lines.push("[The state of the shell could not be kept: it is as before this command.]");
    lines.push(`[Command finished with exit code ${exitCode}]`);
    return withOutput(running, prefix, lines.join("\n"));
  }
  if (why === "flood") return withOutput(running, prefix, "[The command printed more than 1 GiB and was ended.]");
  const seconds = (timeMs: number) => Math.round(timeMs / 100) / 10;
  const what =
    why === "quiet"
      ? `has no new output after ${seconds(shell.settings.quietMs)} seconds`
      : `timed out after ${seconds(told.limitMs)} seconds`;
  return withOutput(running, prefix, `[The command ${what}. ${advice}]`);
}

function notExecuted(running: RunningCommand, text: string): ToolOutcome {
  const shown = text.length > 200 ? `${textStart(text, 200)}...` : text;
  const words =
    `[Your command "${shown}" is NOT executed. The previous command is still running - You CANNOT send new commands until the ` +
    "previous command is completed. By setting `is_input` to `true`, you can interact with the current process: " +
    `${advice}]`;
  return withOutput(running, "[Below is the output of the previous command.]\n", words);
}

function withOutput(running: RunningCommand, prefix: string, end: string): ToolOutcome {
  const { text, wholeBytes } = running.takeOutput().text();
  const body = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return { output: `${prefix}${body}${end}`, ...(wholeBytes !== null && { wholeBytes }) };
}

const plain = (output: string): ToolOutcome => ({ output });
