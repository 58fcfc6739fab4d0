/** Python files below a folder, in order of their paths, hidden folders left out. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type IndexedFile, indexFile } from "@rolldeck/tools/code-search/indexed-file";

/** Relative to the folder. */
export function pythonPaths(folder: string): string[] {
  const found: string[] = [];
  const walk = (inside: string): void => {
    const entries = readdirSync(path.join(folder, inside), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const own = path.join(inside, entry.name);
      if (entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "__pycache__") walk(own);
      else if (entry.isFile() && entry.name.endsWith(".py")) found.push(own);
    }
  };
  walk("");
  return found;
}

export async function indexed(folder: string, name: string): Promise<IndexedFile> {
  const file = await indexFile(name, readFileSync(path.join(folder, name)));
  if (file === null) throw new Error(`${name} is no source file`);
  return file;
}
