/** `rolldeck export checkpoint`: a checkpoint as a tar of a Hugging Face folder or of a PEFT adapter. */
import { open, rename, rm } from "node:fs/promises";
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import {
  CheckpointId,
  checkpointId,
  type ExportFormat,
  exportFormats,
  parseCheckpointId,
} from "@rolldeck/contracts/api/checkpoints";
import { type Command, Option } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { print } from "./output.ts";
import { wakeReader } from "./wake-reader.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
  readonly version?: string;
  readonly output?: string;
  readonly format: ExportFormat;
  readonly wake?: boolean;
}

export interface WrittenCheckpoint {
  readonly id: string;
  readonly format: ExportFormat;
  readonly file: string;
  readonly bytes: number;
}

export function addExportCheckpoint(exports: Command): void {
  withConnection(exports.command("checkpoint <run>"))
    .description("Write a checkpoint as a tar of a Hugging Face folder: weights, config, tokenizer, model card")
    .option("--version <n>", "policy version, which is the number of its step; the newest where none is named")
    .addOption(
      new Option("--format <format>", "hf: a Hugging Face folder, an adapter merged in; peft: the adapter alone")
        .choices(exportFormats)
        .default("hf"),
    )
    .option("-o, --output <file>", "where to; <run>-v<version>.tar where none is named, -adapter.tar for peft")
    .option("--wake", "of a run on the fleet whose workers are gone: ask for one that reads its files, and wait for it")
    .action(async (run: string, flags: Flags) => {
      const { rolldeck } = connect(flags);
      const id = await idOf(rolldeck, run, flags.version);
      if (flags.wake === true) await wakeReader(rolldeck, parseCheckpointId(id).runId);
      const { format } = flags;
      const file = flags.output ?? (format === "hf" ? `${id}.tar` : `${id}-adapter.tar`);
      const onProgress = process.stderr.isTTY ? showProgress : () => undefined;
      const written = await writeCheckpoint(rolldeck, { id, format, file }, onProgress);
      print(flags.json === true, written, () => `${written.bytes} bytes: ${written.file}; unpack it with tar -xf`);
    });
}

/** A run with a version, a checkpoint's own id, or a run alone: its newest. @throws CommandFailure */
async function idOf(rolldeck: Rolldeck, run: string, version: string | undefined): Promise<string> {
  if (CheckpointId.safeParse(run).success && version === undefined) return run;
  if (version !== undefined && !/^(?:0|[1-9]\d{0,6})$/.test(version))
    throw new CommandFailure("--version is a whole number from 0");
  if (version !== undefined) return checkpointId(run, Number(version));
  const newest = (await rolldeck.readCheckpoints(run)).checkpoints[0];
  if (newest === undefined) throw new CommandFailure(`run ${run} has no checkpoint`);
  return newest.id;
}

/** The file appears when it is whole, and only then replaces what had its name. @throws CommandFailure */
export async function writeCheckpoint(
  rolldeck: Pick<Rolldeck, "exportCheckpoint">,
  { id, format, file }: Omit<WrittenCheckpoint, "bytes">,
  onProgress: (bytes: number, of: number) => void,
): Promise<WrittenCheckpoint> {
  const { length, bytes: parts } = await rolldeck.exportCheckpoint(id, { format });
  const partial = `${file}.partial-${process.pid}`;
  const handle = await open(partial, "wx").catch(async (cause: unknown) => {
    await parts.return();
    throw new CommandFailure(`${file} can't be written: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  });
  try {
    let bytes = 0;
    for await (const part of parts) {
      await handle.writeFile(part);
      bytes += part.length;
      onProgress(bytes, length);
    }
    if (bytes !== length)
      throw new CommandFailure(`the export ended after ${bytes} of ${length} bytes: nothing was written`);
    await handle.sync();
    await rename(partial, file);
    return { id, format, file, bytes };
  } finally {
    await handle.close();
    await rm(partial, { force: true });
  }
}

function showProgress(bytes: number, of: number): void {
  const megabytes = (count: number) => (count / 1e6).toFixed(1);
  process.stderr.write(`\r${megabytes(bytes)} of ${megabytes(of)} MB${bytes === of ? "\n" : ""}`);
}
