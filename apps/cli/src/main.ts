/** Entry of the `rolldeck` command: parses the command line, loads only what the command needs. */
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { addCheckpointCommands } from "./commands/checkpoint-commands.ts";
import { addCompareCommands } from "./commands/compare-commands.ts";
import { addDispatchCommands } from "./commands/dispatch-commands.ts";
import { errorText } from "./commands/error-text.ts";
import { addExportBatch } from "./commands/export-batch.ts";
import { addExportCheckpoint } from "./commands/export-checkpoint.ts";
import { addFleetCommands } from "./commands/fleet-commands.ts";
import { addRunCommands } from "./commands/run-commands.ts";
import { addRunSandboxCommands } from "./commands/sandbox-commands.ts";
import { addSandboxCommands } from "./commands/sandbox-host.ts";
import { addServerCommands } from "./commands/server-commands.ts";
import { addServingCommands } from "./commands/serving-commands.ts";
import { addSimulate } from "./commands/simulate.ts";
import { addTaskBuild } from "./commands/task-build.ts";
import { addTaskCheck } from "./commands/task-check.ts";
import { startCommand } from "./start/options.ts";

/** Runs one command line; failures print one message and set the exit code (1 failed, 2 wrong usage). */
export async function main(argv: readonly string[]): Promise<void> {
  const program = new Command("rolldeck")
    .description("The control deck for reinforcement learning of multi-turn LLM agents")
    .showHelpAfterError()
    .exitOverride();
  program.addCommand(
    startCommand(async (options) => {
      const { start } = await import("./start/start.ts");
      await start(options, process.env.ROLLDECK_ROOT ?? process.cwd());
    }),
  );
  addRunCommands(program);
  addCompareCommands(program);
  addDispatchCommands(program);
  addCheckpointCommands(program);
  addServingCommands(program);
  const exports = program.command("export").description("Write what the server holds to files");
  addExportBatch(exports);
  addExportCheckpoint(exports);
  addServerCommands(program);
  addFleetCommands(program);
  addSandboxCommands(program);
  addRunSandboxCommands(program);
  addSimulate(program);
  const task = program.command("task").description("Sets of tasks with sandboxes, built and checked here");
  addTaskBuild(task);
  addTaskCheck(task);
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      // What a flag's own parser finds wrong is printed with the usage; what a command finds later is not.
      if (error instanceof InvalidArgumentError) process.stderr.write(`rolldeck: ${errorText(error)}\n`);
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    process.exitCode = 1;
    process.stderr.write(`rolldeck: ${errorText(error)}
`);
  }
}
