/**
 * Where everything is kept. Invariant: when the embedded Postgres runs as another user (we are root), every folder above the
 * data can be entered by it; a clone under a closed home therefore gets another place, said aloud.
 */
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export interface DataFolder {
  readonly path: string;
  /** A sentence when the folder is not the one a person would expect. */
  readonly notice: string | null;
}

/** True when a user that owns nothing here may pass through every folder from the root to `folder` (missing ones ignored). */
export function enterableByOthers(folder: string): boolean {
  let at = path.resolve(folder);
  for (;;) {
    const stats = statSync(at, { throwIfNoEntry: false });
    if (stats !== undefined && (stats.mode & 0o001) === 0) return false;
    const parent = path.dirname(at);
    if (parent === at) return true;
    at = parent;
  }
}

function usable(folder: string, needsOthers: boolean): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o711 });
  } catch {
    return false;
  }
  if (!needsOthers) return true;
  chmodSync(folder, 0o711);
  return enterableByOthers(folder);
}

/**
 * `--data-dir`, else `$XDG_DATA_HOME/rolldeck`, else `./.rolldeck`; when Postgres could not enter it, `/var/lib/rolldeck` or a
 * temporary folder.
 * @throws Error when a folder that was asked for by name cannot be used.
 */
export function chooseDataFolder(options: {
  readonly asked: string | undefined;
  readonly root: string;
  readonly xdgDataHome: string | undefined;
  /** The embedded Postgres will run as another user. */
  readonly needsOthers: boolean;
}): DataFolder {
  const { asked, root, xdgDataHome, needsOthers } = options;
  if (asked !== undefined) {
    const folder = path.resolve(asked);
    if (!usable(folder, needsOthers)) {
      throw new Error(
        `--data-dir ${folder} can't be used: ${needsOthers ? "the Postgres user must be able to enter every folder above it (chmod o+x), and it" : "it"} must be writable. Choose another folder.`,
      );
    }
    return { path: folder, notice: null };
  }
  const first = xdgDataHome ? path.join(xdgDataHome, "rolldeck") : path.join(root, ".rolldeck");
  if (usable(first, needsOthers)) return { path: first, notice: null };
  const rest = ["/var/lib/rolldeck", path.join(tmpdir(), "rolldeck")];
  const folder = rest.find((candidate) => usable(candidate, needsOthers));
  if (folder === undefined) throw new Error(`no folder for data can be written; name one with --data-dir`);
  return {
    path: folder,
    notice: `${first} can't be entered by the Postgres user, so data is kept in ${folder} (--data-dir changes that)`,
  };
}
