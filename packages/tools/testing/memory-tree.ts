/** A tree of source files that is in memory only, as searches see it. */
import { type IndexedFile, indexFile } from "../src/code-search/indexed-file.ts";
import { RepositoryIndex } from "../src/code-search/repository-index.ts";
import { RepositoryView } from "../src/code-search/repository-view.ts";

export async function memoryFile(path: string, text: string): Promise<IndexedFile> {
  const file = await indexFile(path, Buffer.from(text, "utf8"));
  if (file === null) throw new Error(`${path} is no source file`);
  return file;
}

export async function memoryTree(files: Readonly<Record<string, string>>): Promise<RepositoryView> {
  const indexed: IndexedFile[] = [];
  for (const [path, text] of Object.entries(files)) indexed.push(await memoryFile(path, text));
  return new RepositoryView(new RepositoryIndex(indexed));
}
