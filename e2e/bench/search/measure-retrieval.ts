/**
 * Descriptions of real patches as questions, the functions that they changed as answers. Before each patch, the tree is indexed as
 * it is then; search and baseline rank the same functions, all outside of tests, docs and packaging.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { ownTexts } from "@rolldeck/tools/code-search/file-terms";
import { type IndexedFile, refId } from "@rolldeck/tools/code-search/indexed-file";
import { RepositoryIndex } from "@rolldeck/tools/code-search/repository-index";
import { RepositoryView } from "@rolldeck/tools/code-search/repository-view";
import { isTestPath } from "@rolldeck/tools/code-search/source-file";
import { searchText } from "@rolldeck/tools/code-search/text-search";
import { applyPatch, unpack } from "./debian-source.ts";
import { grepRanked } from "./grep-ranked.ts";
import { patchQuery } from "./patch-query.ts";
import { indexed, pythonPaths } from "./python-files.ts";
import type { SearchResult } from "./search-result.ts";

const leastQueries = 30;
const first = 5;

interface Score {
  readonly patch: string;
  readonly ours: number;
  readonly grep: number;
}

export async function measureRetrieval(
  sources: readonly string[],
  folder: string,
  progress: (line: string) => void,
): Promise<Pick<SearchResult, "queries" | "recallAt5" | "grepRecallAt5">> {
  const scores: Score[] = [];
  for (const dsc of sources) {
    progress(path.basename(dsc));
    for await (const score of packageScores(dsc, path.join(folder, path.basename(dsc, ".dsc")))) {
      scores.push(score);
      progress(`  ${score.patch}: ${score.ours.toFixed(2)}, grep ${score.grep.toFixed(2)}`);
    }
  }
  progress(`n = ${scores.length} patches that change functions`);
  if (scores.length < leastQueries) throw new Error(`only ${scores.length} patches change functions`);
  const mean = (values: readonly number[]): number =>
    Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * 1000) / 1000;
  return {
    queries: scores.length,
    recallAt5: mean(scores.map(({ ours }) => ours)),
    grepRecallAt5: mean(scores.map(({ grep }) => grep)),
  };
}

async function* packageScores(dsc: string, target: string): AsyncGenerator<Score> {
  const { tree, patches } = unpack(dsc, target);
  const files = new Map<string, IndexedFile>();
  for (const name of pythonPaths(tree)) if (!name.startsWith("debian/")) files.set(name, await indexed(tree, name));
  let view = new RepositoryView(new RepositoryIndex([...files.values()]));
  for (const patch of patches) {
    const text = readFileSync(patch, "utf8");
    const before = [...files.values()];
    const changed = await changes(tree, patch, text, files);
    const truth = changed.flatMap(({ old, now }) => (isAnswer(old) ? changedFunctions(old, now) : []));
    if (truth.length > 0) {
      const query = patchQuery(text);
      yield {
        patch: path.basename(patch),
        ours: recall(truth, ours(view, query)),
        grep: recall(truth, grepRanked(before.filter(isAnswer), query)),
      };
    }
    for (const { name } of changed) {
      const now = files.get(name);
      if (now === undefined) view.remove(name);
      else view.put(now);
    }
    // What a rollout would do with as many changes.
    if (view.changes > 100) view = new RepositoryView(new RepositoryIndex([...files.values()]));
  }
}

/** The Python files that the patch names, before and after it. `files` follows the tree. */
async function changes(tree: string, patch: string, text: string, files: Map<string, IndexedFile>) {
  applyPatch(tree, patch);
  const named = [...text.matchAll(/^(?:\+\+\+|---) (?:[^/\s]+\/)(\S+\.py)\b/gm)].map(([, name = ""]) => name);
  const changed: {
    readonly name: string;
    readonly old: IndexedFile | undefined;
    readonly now: IndexedFile | undefined;
  }[] = [];
  for (const name of new Set(named)) {
    const old = files.get(name);
    const now = existsSync(path.join(tree, name)) ? await indexed(tree, name) : undefined;
    if (now === undefined) files.delete(name);
    else files.set(name, now);
    changed.push({ name, old, now });
  }
  return changed;
}

const isAnswer = (file: IndexedFile | undefined): file is IndexedFile =>
  file !== undefined && !isTestPath(file.source.path) && !/(^|\/)(docs?|debian)\//.test(file.source.path);

/** Ids of functions whose own text, without functions in them, is another or gone. */
function changedFunctions(old: IndexedFile, now: IndexedFile | undefined): string[] {
  const after = functionTexts(now);
  return [...functionTexts(old)].filter(([id, text]) => after.get(id) !== text).map(([id]) => id);
}

function functionTexts(file: IndexedFile | undefined): Map<string, string> {
  const texts = new Map<string, string>();
  if (file === undefined) return texts;
  const own = ownTexts(file.source);
  for (const [place, { kind }] of file.source.entities.entries()) {
    const id = refId({ file, place });
    if (kind === "function") texts.set(id, (texts.get(id) ?? "") + own[place]);
  }
  return texts;
}

function ours(view: RepositoryView, query: string): string[] {
  const accepts = ({ file, place }: { readonly file: IndexedFile; readonly place: number }): boolean =>
    isAnswer(file) && file.source.entities[place]?.kind === "function";
  return searchText(view, query, { limit: 50, accepts }).map(refId);
}

/** Share of the true ones among the first five different answers. */
function recall(truth: readonly string[], answers: readonly string[]): number {
  const best = new Set([...new Set(answers)].slice(0, first));
  return truth.filter((id) => best.has(id)).length / truth.length;
}
