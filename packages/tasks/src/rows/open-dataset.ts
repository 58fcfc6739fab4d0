/**
 * A data set and its two splits. A folder holds files for each split: `train.jsonl`, `train.parquet` or `train-00000-of-00002.parquet`
 * and its fellows, and the same of `evaluate` or, where there is none, of `test` (either may be missing: that split is empty); of a
 * single file every n-th row is held out, the same rows for every run. Invariants: no row is in both splits; the files of a folder
 * lie in it (or below) with every link followed, as its corpus does.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import type { Split } from "@rolldeck/contracts/ports/task";
import type { z } from "zod";
import { isInside } from "../inside-folder.ts";
import { joinRowFiles } from "./join-row-files.ts";
import { openRowFile, type RowFile, type RowFileOptions } from "./row-file.ts";

export interface Dataset<R> {
  size(split: Split): number;
  /** @throws RangeError past the end */
  row(split: Split, index: number): R;
  /**
   * The row's name: its place and what it says, so that a row that was changed, or moved by others, is never taken for the one
   * that a rollout was planned with. Begins with what `nameOf` says, as far as it can stand in an address. Reads nothing.
   * @throws RangeError past the end
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
  options: RowFileOptions<z.output<S>> = {},
): Promise<Dataset<z.output<S>>> {
  if ((await stat(path)).isDirectory()) return openFolder(path, (file) => openRowFile(file, schema, options));
  return splitFile(await openRowFile(path, schema, options), heldOutEvery);
}

/** The first that a folder has files of. */
const namesOf = { train: ["train"], evaluate: ["evaluate", "test"] } as const satisfies Record<
  Split,
  readonly string[]
>;

async function openFolder<R>(path: string, open: (file: string) => Promise<RowFile<R>>): Promise<Dataset<R>> {
  const names = (await readdir(path)).sort();
  const openSplit = async (split: Split): Promise<RowFile<R> | null> => {
    const found = namesOf[split].map((name) => filesOf(name, names)).find((files) => files.length > 0) ?? [];
    const files: RowFile<R>[] = [];
    for (const name of found) files.push(await open(await insidePath(path, name)));
    return files.length === 0 ? null : joinRowFiles(files);
  };
  const files = { train: await openSplit("train"), evaluate: await openSplit("evaluate") };
  if (files.train === null && files.evaluate === null) {
    const message = "the folder holds neither train.jsonl nor evaluate.jsonl (nor .parquet of them)";
    throw new InputError([{ path: "dataset", message }]);
  }
  const fileOf = (split: Split): RowFile<R> => {
    const file = files[split];
    if (file === null) throw new RangeError(`the data set has no ${split} rows`);
    return file;
  };
  return {
    size: (split) => files[split]?.count ?? 0,
    row: (split, index) => fileOf(split).row(index),
    instanceId: (split, index) => nameOfRow(split, index, fileOf(split), index),
  };
}

/** One file of lines, one of columns, or its parts. */
function filesOf(split: string, names: readonly string[]): readonly string[] {
  for (const whole of [`${split}.jsonl`, `${split}.parquet`]) if (names.includes(whole)) return [whole];
  return names.filter(
    (name) => name.startsWith(`${split}-`) && /^-\d+-of-\d+\.parquet$/u.test(name.slice(split.length)),
  );
}

async function insidePath(folder: string, name: string): Promise<string> {
  const [home, path] = await Promise.all([realpath(folder), realpath(join(folder, name))]);
  if (isInside(path, home)) return path;
  throw new InputError([{ path: "dataset", message: `${name} leads out of the data set's folder` }]);
}

function nameOfRow<R>(split: Split, index: number, file: RowFile<R>, place: number): string {
  const label = file
    .label(place)
    ?.replaceAll(/[^A-Za-z0-9._-]/gu, "_")
    .slice(0, 80);
  return `${label === undefined || label === "" ? "" : `${label}-`}${split}-${index}-${file.mark(place)}`;
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
    instanceId: (split, index) => nameOfRow(split, index, file, checked(split, index)),
  };
}
