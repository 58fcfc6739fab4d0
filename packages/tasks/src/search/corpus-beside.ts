/**
 * The corpus of a data set: a file beside its rows. Invariant: what comes back lies, with every link followed, in the folder of
 * the data set (or below): a config that may name a data set reaches no other folder by its corpus.
 */
import { realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { isInside, realPath, relativePath } from "../inside-folder.ts";

/**
 * @param dataset absolute, of a file or folder
 * @returns absolute path of a file @throws InputError at `options.corpus`
 */
export function corpusBeside(dataset: string, name: string): string {
  if (!relativePath.test(name)) throw refused("must be a relative path without . or ..");
  const folder = realpathSync(statSync(dataset).isDirectory() ? dataset : dirname(dataset));
  const path = realPath(join(folder, name));
  if (path === null || !statSync(path).isFile()) throw refused(`there is no file "${name}" beside the rows`);
  if (!isInside(path, folder)) throw refused("leads out of the data set's folder");
  return path;
}

const refused = (message: string): InputError =>
  new InputError([
    { path: "options.corpus", message, fix: "name a JSONL file of {id, title?, text} in the same folder" },
  ]);
