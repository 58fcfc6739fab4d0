/**
 * A data set's name → its path. Invariant: what comes back lies, with every link followed, under one of the roots: a config can
 * name data sets, never reach other files.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { isInside, realPath, relativePath } from "./inside-folder.ts";

/**
 * The first root that has it wins. @returns absolute path of a file or folder
 * @throws InputError at `dataset`
 */
export function resolveDataset(name: string, roots: readonly string[]): string {
  if (!relativePath.test(name)) throw refused("must be a relative path without . or ..");
  for (const root of roots) {
    const home = realPath(root);
    const path = home === null ? null : realPath(join(home, name));
    if (home === null || path === null) continue;
    if (!isInside(path, home)) throw refused("leads out of the data roots");
    const kind = statSync(path);
    if (kind.isFile() || kind.isDirectory()) return path;
  }
  throw refused(
    roots.length === 0 ? "this server has no data roots" : `no data set "${name}" under this server's data roots`,
  );
}

const refused = (message: string): InputError =>
  new InputError([{ path: "dataset", message, fix: "name a file under a folder of ROLLDECK_DATA_ROOTS" }]);
