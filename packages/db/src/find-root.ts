/** Where the project lies: `ROLLDECK_ROOT` from the launcher, else the nearest folder upward that holds `turbo.json`. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { InputError } from "@rolldeck/contracts/errors";

export function findRoot(): string {
  const told = process.env.ROLLDECK_ROOT;
  if (told) return told;
  for (const start of [dirname(fileURLToPath(import.meta.url)), process.cwd()]) {
    for (let folder = start; ; folder = dirname(folder)) {
      if (existsSync(join(folder, "turbo.json"))) return folder;
      if (dirname(folder) === folder) break;
    }
  }
  throw new InputError([
    { path: "ROLLDECK_ROOT", message: "the project folder was not found", fix: "set it to the folder of turbo.json" },
  ]);
}
