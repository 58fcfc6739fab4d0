/** Paths that come from configs. Invariant: nothing here opens a file; links are followed before anything is compared. */
import { realpathSync } from "node:fs";
import { sep } from "node:path";

/** Relative, without empty, "." or ".." parts and without control characters. */
export const relativePath = /^(?!\/)(?!.*\/\/)(?!.*(?:^|\/)\.\.?(?:\/|$))[^\p{Cc}\p{Cs}]+$/u;

const nowhere = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"]);

/** With every link followed; null where there is nothing. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && nowhere.has(String(cause.code))) return null;
    throw cause;
  }
}

/** Both with every link followed. */
export const isInside = (path: string, folder: string): boolean =>
  path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
