/** `rolldeck serving …`: checkpoints that answer as OpenAI-compatible endpoints. */
import { CheckpointId, checkpointId } from "@rolldeck/contracts/api/checkpoints";
import type { Serving } from "@rolldeck/contracts/api/servings";
import type { Command } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { plain, print, table } from "./output.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addServingCommands(program: Command): void {
  const serving = program.command("serving").description("Serve checkpoints as OpenAI-compatible endpoints");
  withConnection(serving.command("start <run> <version>"))
    .description("Serve a checkpoint; prints its base URL and its key, which is shown once")
    .action(async (run: string, version: string, flags: Flags) => {
      const id = `${run}-v${version}`;
      if (!CheckpointId.safeParse(id).success) throw new CommandFailure("name a run, and a version as a whole number");
      const { rolldeck, url } = connect(flags);
      const started = await rolldeck.serveCheckpoint(id);
      print(flags.json === true, started, () => `base URL  ${url}${started.path}\nkey       ${started.key}`);
    });
  withConnection(serving.command("list"))
    .description("List what is served")
    .action(async (flags: Flags) => {
      const servings = await connect(flags).rolldeck.listServings();
      print(flags.json === true, servings, () => listed(servings));
    });
  withConnection(serving.command("stop <serving>"))
    .description("Stop serving a checkpoint; its key opens nothing from then on")
    .action(async (servingId: string, flags: Flags) => {
      const left = await connect(flags).rolldeck.stopServing(servingId);
      print(flags.json === true, left, () => `${servingId} stopped`);
    });
}

function listed(servings: readonly Serving[]): string {
  if (servings.length === 0) return "nothing is served; see rolldeck serving start --help";
  const row = (each: Serving) => [
    each.servingId,
    checkpointId(each.runId, each.version),
    plain(each.runName),
    each.path,
    each.startedAt,
    each.lastUsedAt ?? "never",
  ];
  return table(["serving", "checkpoint", "run", "path", "since", "last used"], servings.map(row));
}
