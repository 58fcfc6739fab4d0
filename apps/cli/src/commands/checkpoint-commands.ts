/** `rolldeck checkpoint …` and `rolldeck run restore`: what a run has kept, and going on from it. */
import { type CheckpointInfo, checkpointId, type RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import type { Command } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { plain, print, table } from "./output.ts";
import { wakeReader } from "./wake-reader.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function addCheckpointCommands(program: Command): void {
  const checkpoint = program.command("checkpoint").description("List and pin what runs have kept, and set runs back");
  withConnection(checkpoint.command("list <run>"))
    .description("List a run's checkpoints, why each is kept, and the runs that came from them")
    .action(async (runId: string, flags: Flags) => {
      const found = await connect(flags).rolldeck.readCheckpoints(runId);
      print(flags.json === true, found, () => listed(found));
    });
  for (const [name, pinned, words] of [
    ["pin", true, "Keep a checkpoint whatever the run's rule says"],
    ["unpin", false, "Leave a checkpoint to the run's rule again"],
  ] as const)
    withConnection(checkpoint.command(`${name} <run> <version>`))
      .description(words)
      .action(async (runId: string, version: string, flags: Flags) => {
        const id = checkpointId(runId, versionOf(version));
        const reply = await connect(flags).rolldeck.pinCheckpoint(id, pinned);
        print(flags.json === true, reply, () => `${reply.id} ${reply.pinned ? "pinned" : "not pinned"}`);
      });
  withConnection(checkpoint.command("wake <run>"))
    .description("Ask for the worker that reads what a run on the fleet saved, once its own are gone")
    .option("--wait", "until it answers, telling what it waits for")
    .action(async (runId: string, flags: Flags & { wait?: boolean }) => {
      const { rolldeck } = connect(flags);
      const found = flags.wait === true ? await wakeReader(rolldeck, runId) : await rolldeck.wakeFleetReader(runId);
      print(flags.json === true, found, () => plain(found.fleet?.message ?? ""));
    });
  withConnection(checkpoint.command("release <run>"))
    .description("Give that worker back now; unused it goes back by itself")
    .action(async (runId: string, flags: Flags) => {
      const found = await connect(flags).rolldeck.releaseFleetReader(runId);
      print(flags.json === true, found, () => "given back");
    });
  withConnection(checkpoint.command("restore <run> <version>"))
    .description("Set a training run that is over back to a checkpoint; its later steps become a run of their own")
    .action(async (runId: string, version: string, flags: Flags) => {
      const reply = await connect(flags).rolldeck.restoreRun(runId, versionOf(version));
      const later = reply.supersededRunId === null ? "" : `; its later steps are run ${reply.supersededRunId} now`;
      print(flags.json === true, reply, () => `${reply.runId} ${reply.status}${later}`);
    });
}

function versionOf(text: string): number {
  if (!/^(?:0|[1-9]\d{0,6})$/.test(text)) throw new CommandFailure("a version is a whole number from 0");
  return Number(text);
}

function listed({ checkpoints, parent, children }: RunCheckpoints): string {
  const row = (each: CheckpointInfo) => [
    each.id,
    each.version,
    each.bytes,
    each.createdAt,
    each.measure,
    each.keptAs.join(", ") || "goes next",
    each.children.map(({ runId }) => runId).join(", "),
  ];
  const lines = [
    parent === null
      ? null
      : `from version ${parent.version ?? "(not begun)"} of ${parent.runId} ${plain(parent.name)} (${parent.relation})`,
    checkpoints.length === 0
      ? "no checkpoint yet"
      : table(["checkpoint", "version", "bytes", "saved", "measure", "kept as", "runs"], checkpoints.map(row)),
    children.length === 0 ? null : `${children.length} ${children.length === 1 ? "run" : "runs"} came from it`,
  ];
  return lines.filter((line) => line !== null).join("\n");
}
