/**
 * A model's name → its folder. Invariant: the folder that comes back lies, with every link followed, under one of the roots;
 * a config can name models, never paths.
 */
import { realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";

/** Folder names joined by "/": no empty ones, no "." or "..", nothing that a shell or a path would read otherwise. */
const modelName = /^(?!\.)[\w.+-]+(?:\/(?!\.)[\w.+-]+)*$/;

/**
 * The first root that has the model wins.
 * @throws InputError for a name that is a path, NotFoundError when no root has it
 */
export function resolveModel(name: string, roots: readonly string[]): string {
  if (!modelName.test(name)) throw refused("must be a folder name under a model root, such as quickstart or org/model");
  for (const root of roots) {
    const home = realPath(root);
    const folder = home === null ? null : realPath(join(home, name));
    if (home === null || folder === null || !statSync(folder).isDirectory()) continue;
    if (!folder.startsWith(home + sep)) throw refused("leads out of the model roots");
    return folder;
  }
  throw new NotFoundError("model", name);
}

const refused = (message: string): InputError => new InputError([{ path: "model.name", message }]);

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")) return null;
    throw cause;
  }
}
