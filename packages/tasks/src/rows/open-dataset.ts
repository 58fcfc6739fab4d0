/**
 * A data set and its two splits. A folder holds `train.jsonl` and `evaluate.jsonl` (either may be missing: that split is
 * empty); of a single file every n-th row is held out, the same rows for every run. Invariants: no row is in both splits; the
 * files of a folder lie in it (or below) with every link followed, as its corpus does.
 */
import { realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import type { Split } from "@rolldeck/contracts/ports/task";
import type { z } from "zod";
import { isInside } from "../inside-folder.ts";
import { openRowFile, type RowFile } from "./row-file.ts";

export interface Dataset<R> {
  size(split: Split): number;
  /** @throws RangeError past the end */
  row(split: Split, index: number): R;
  /**
   * The row's name: its place and what it says, so that a row that was changed, or moved by others, is never taken for the one
   * that a rollout was planned with. Reads nothing. @throws RangeError past the end
   */
  instanceId(split: Split, index: number): string;
}

/**
 * @param path absolute, of a file or folder
 * @param heldOutEvery of a single file: 0 = none is held out, 1 = all, n = every n-th
 * @throws InputError at `dataset`
 */
export async function openDataset<S extends z.ZodType>(
  path: string,
  schema: S,
  heldOutEvery: number,
): Promise<Dataset<z.output<S>>> {
  const isFolder = (await stat(path)).isDirectory();
  return isFolder ? openFolder(path, schema) : splitFile(await openRowFile(path, schema), heldOutEvery);
}

async function openFolder<S extends z.ZodType>(path: string, schema: S): Promise<Dataset<z.output<S>>> {
  const files = {
    train: await openIfThere(path, "train.jsonl", schema),
    evaluate: await openIfThere(path, "evaluate.jsonl", schema),
  };
  if (files.train === null && files.evaluate === null) {
    throw new InputError([{ path: "dataset", message: "the folder holds neither train.jsonl nor evaluate.jsonl" }]);
  }
  const fileOf = (split: Split): RowFile<z.output<S>> => {
    const file = files[split];
    if (file === null) throw new RangeError(`the data set has no ${split} rows`);
    return file;
  };
  return {
    size: (split) => files[split]?.count ?? 0,
    row: (split, index) => fileOf(split).row(index),
    instanceId: (split, index) => `${split}-${index}-${fileOf(split).mark(index)}`,
  };
}

async function openIfThere<S extends z.ZodType>(
  folder: string,
  name: string,
  schema: S,
): Promise<RowFile<z.output<S>> | null> {
  try {
    const [home, path] = await Promise.all([realpath(folder), realpath(join(folder, name))]);
    if (!isInside(path, home)) {
      throw new InputError([{ path: "dataset", message: `${name} leads out of the data set's folder` }]);
    }
    return await openRowFile(path, schema);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return null;
    throw cause;
  }
}

/** Row n·k − 1 is the k-th held out; the others are for training, in their order. */
function splitFile<R>(file: RowFile<R>, every: number): Dataset<R> {
  const heldOut = every === 0 ? 0 : Math.floor(file.count / every);
  const sizes = { train: file.count - heldOut, evaluate: heldOut };
  const place = (split: Split, index: number): number => {
    if (split === "evaluate") return (index + 1) * every - 1;
    return every === 0 ? index : index + Math.floor(index / (every - 1));
  };
  const checked = (split: Split, index: number): number => {
    if (Number.isSafeInteger(index) && index >= 0 && index < sizes[split]) return place(split, index);
    throw new RangeError(`the data set has ${sizes[split]} ${split} rows, not ${index}`);
  };
  return {
    size: (split) => sizes[split],
    row: (split, index) => file.row(checked(split, index)),
    instanceId: (split, index) => `${split}-${index}-${file.mark(checked(split, index))}`,
  };
}
