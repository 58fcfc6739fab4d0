/**
 * A data set's name → its path. Invariant: what comes back lies, with every link followed, under one of the roots: a config can
 * name data sets, never reach other files.
 */
import { realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";

/** Relative, without empty, "." or ".." parts and without control characters. */
const datasetName = /^(?!\/)(?!.*\/\/)(?!.*(?:^|\/)\.\.?(?:\/|$))[^\p{Cc}\p{Cs}]+$/u;

/**
 * The first root that has it wins. @returns absolute path of a file or folder
 * @throws InputError at `dataset`
 */
export function resolveDataset(name: string, roots: readonly string[]): string {
  if (!datasetName.test(name)) throw refused("must be a relative path without . or ..");
  for (const root of roots) {
    const home = realPath(root);
    const path = home === null ? null : realPath(join(home, name));
    if (home === null || path === null) continue;
    if (!path.startsWith(home.endsWith(sep) ? home : home + sep)) throw refused("leads out of the data roots");
    const kind = statSync(path);
    if (kind.isFile() || kind.isDirectory()) return path;
  }
  throw refused(
    roots.length === 0 ? "this server has no data roots" : `no data set "${name}" under this server's data roots`,
  );
}

const refused = (message: string): InputError =>
  new InputError([{ path: "dataset", message, fix: "name a file under a folder of ROLLDECK_DATA_ROOTS" }]);

const nowhere = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"]);

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && nowhere.has(String(cause.code))) return null;
    throw cause;
  }
}
