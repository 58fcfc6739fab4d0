/**
 * `npm run bench -- search`: the code search of agents over a 1,000-file Python repository, and how well it finds what real patches
 * changed from their descriptions alone.
 * → {"files","indexS","reindexMs","queryP95Ms","patternP95Ms","patternLiteralP95Ms","queries","recallAt5","grepRecallAt5",
 *    "heldOutRecallAt5","heldOut"}
 *
 * indexS: source text to a searchable index, one thread. reindexMs: one changed file until the next answer can have it, median.
 * queryP95Ms: whole answers to names, near names, texts and descriptions. patternP95Ms: structural patterns without a literal word;
 * patternLiteralP95Ms: with one. recallAt5: of the functions that a patch changed, the share among the first five answers to its
 * description, mean over patches; grepRecallAt5: the same for functions ranked by how many of the description's words they hold.
 * The product's weights were chosen on these packages. heldOutRecallAt5 is the same without that: for each package the weights are
 * those of nine that are best on the two others; heldOut tells it package by package.
 *
 * The repository is Django's package and Python's standard library. Sources: the folder ROLLDECK_DEBIAN_SOURCES, else apt.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { sourceFiles } from "./search/debian-source.ts";
import { measureRetrieval } from "./search/measure-retrieval.ts";
import { measureSpeed } from "./search/measure-speed.ts";
import type { SearchResult } from "./search/search-result.ts";

export async function run(_args: string[], progress: (line: string) => void): Promise<SearchResult> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-bench-search-"));
  try {
    const sources = sourceFiles(process.env.ROLLDECK_DEBIAN_SOURCES || null, folder, progress);
    const speed = await measureSpeed(sources, folder, progress);
    const retrieval = await measureRetrieval(sources, folder, progress);
    return { ...speed, ...retrieval };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
