/** `rolldeck export batch`: what a step's update trained, as a file. */
import { open, rename, rm } from "node:fs/promises";
import type { Rolldeck } from "@rolldeck/client/rolldeck";
import { type BatchFormat, batchFormats } from "@rolldeck/contracts/api/batches";
import { type Command, Option } from "commander";
import { CommandFailure } from "./command-failure.ts";
import { type ConnectionFlags, connect, withConnection } from "./connection.ts";
import { print } from "./output.ts";

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
  readonly step: string;
  readonly format: BatchFormat;
  readonly output: string;
}

export interface WrittenBatch {
  readonly runId: string;
  readonly step: number;
  readonly format: BatchFormat;
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
}

export function addExportBatch(exports: Command): void {
  withConnection(exports.command("batch <run>"))
    .description("Write the rows that a step's update trained: tokens, masks, logprobs, advantages")
    .requiredOption("--step <n>", "which step")
    .addOption(new Option("--format <format>", "of the file").choices([...batchFormats]).default("jsonl"))
    .requiredOption("-o, --output <file>", "where to")
    .action(async (runId: string, flags: Flags) => {
      const step = Number(flags.step);
      if (!Number.isInteger(step) || step < 1) throw new CommandFailure("--step is a whole number from 1");
      const written = await writeBatch(connect(flags).rolldeck, {
        runId,
        step,
        format: flags.format,
        file: flags.output,
      });
      print(flags.json === true, written, () => `${written.rows} rows, ${written.bytes} bytes: ${written.file}`);
    });
}

/** The file appears when it is whole, and only then replaces what had its name. @throws CommandFailure where it can't be written */
export async function writeBatch(
  rolldeck: Pick<Rolldeck, "fetchStepBatch">,
  { runId, step, format, file }: Omit<WrittenBatch, "rows" | "bytes">,
): Promise<WrittenBatch> {
  const partial = `${file}.partial-${process.pid}`;
  let rows = 0;
  let bytes = 0;
  const handle = await open(partial, "wx").catch((cause: unknown) => {
    throw new CommandFailure(`${file} can't be written: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  });
  try {
    for await (const page of rolldeck.fetchStepBatch(runId, step, { format })) {
      // Lines go on in the next page; a second Parquet file behind the first would hide it.
      if (format === "parquet" && bytes > 0)
        throw new CommandFailure(
          "the step has more rows than one Parquet file of the server holds: use --format jsonl",
        );
      await handle.writeFile(page.bytes);
      rows += page.rows;
      bytes += page.bytes.length;
    }
    await handle.sync();
    await rename(partial, file);
  } finally {
    await handle.close();
    await rm(partial, { force: true });
  }
  return { runId, step, format, file, rows, bytes };
}
