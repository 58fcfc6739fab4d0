/** `rolldeck task check`: every instance of a data set against its own solution, in real sandboxes. Needs no server. */
import { sandboxRuntimes } from "@rolldeck/contracts/run-config";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { TaskCheckFlags } from "./run-task-check.ts";

const wholeNumber =
  (most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw new InvalidArgumentError(`must be a whole number from 1 to ${most}`);
  };

/** Adds the command to `rolldeck task`. */
export function addTaskCheck(group: Command): void {
  group
    .command("check <dataset>")
    .description("Check that each instance's solution succeeds, and that doing nothing does not")
    .option("--task <name>", "task that the data set is of", "harbor")
    .option("--only <id...>", "instances whose names begin with this")
    .addOption(new Option("--runtime <name>", "where sandboxes open").choices([...sandboxRuntimes]))
    .option("--options <json>", "options of the task set, as a JSON object")
    .option("--repeat <n>", "gradings of each", wholeNumber(100), 1)
    .option("--concurrency <n>", "instances at a time", wholeNumber(64), 2)
    .option("--json", "print JSON")
    .action(async (dataset: string, flags: TaskCheckFlags) => {
      const { runTaskCheck } = await import("./run-task-check.ts");
      await runTaskCheck(dataset, flags);
    });
}
