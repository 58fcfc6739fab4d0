/**
 * Descriptions of real patches as questions, the functions that they changed as answers. Before each patch, the tree is indexed as
 * it is then; searches and baseline rank the same functions, all outside of tests, docs and packaging.
 */
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { ownTexts } from "@rolldeck/tools/code-search/file-terms";
import { type EntityRef, type IndexedFile, refId } from "@rolldeck/tools/code-search/indexed-file";
import { isTestPath } from "@rolldeck/tools/code-search/source-file";
import { applyPatch, unpack } from "./debian-source.ts";
import { grepRanked } from "./grep-ranked.ts";
import { heldOut } from "./held-out.ts";
import { patchQuery } from "./patch-query.ts";
import { indexed, pythonPaths } from "./python-files.ts";
import type { SearchResult } from "./search-result.ts";
import { rankings, TreeRanking } from "./tree-ranking.ts";

const leastQueries = 30;
const first = 5;

interface Score {
  readonly package: string;
  readonly patch: string;
  /** By ranking; the first is the product's. */
  readonly recalls: readonly number[];
  readonly grep: number;
}

export async function measureRetrieval(
  sources: readonly string[],
  folder: string,
  progress: (line: string) => void,
): Promise<Pick<SearchResult, "queries" | "recallAt5" | "grepRecallAt5" | "heldOutRecallAt5" | "heldOut">> {
  const scores: Score[] = [];
  for (const dsc of sources) {
    progress(path.basename(dsc));
    for await (const score of packageScores(dsc, path.join(folder, path.basename(dsc, ".dsc")))) {
      scores.push(score);
      progress(`  ${score.patch}: ${(score.recalls[0] ?? 0).toFixed(2)}, grep ${score.grep.toFixed(2)}`);
    }
  }
  progress(`n = ${scores.length} patches that change functions`);
  if (scores.length < leastQueries) throw new Error(`only ${scores.length} patches change functions`);
  const mean = (values: readonly number[]): number =>
    Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * 1000) / 1000;
  const apart = heldOut(scores);
  for (const [name, { chosen, recall }] of apart)
    progress(`${name} held out: ${recall.toFixed(3)} with ${JSON.stringify(rankings[chosen])}`);
  return {
    queries: scores.length,
    recallAt5: mean(scores.map(({ recalls }) => recalls[0] ?? 0)),
    grepRecallAt5: mean(scores.map(({ grep }) => grep)),
    heldOutRecallAt5: mean([...apart.values()].flatMap(({ queries, recall }) => Array(queries).fill(recall))),
    heldOut: Object.fromEntries(
      [...apart].map(([name, { queries, recall }]) => [name, { queries, recallAt5: mean([recall]) }]),
    ),
  };
}

async function* packageScores(dsc: string, target: string): AsyncGenerator<Score> {
  const { tree, patches } = unpack(dsc, target);
  const files = new Map<string, IndexedFile>();
  for (const name of pythonPaths(tree)) if (!name.startsWith("debian/")) files.set(name, await indexed(tree, name));
  const trees = [...new Set(rankings.map(({ names }) => names))].map((names) => new TreeRanking(names, files.values()));
  for (const patch of patches) {
    const text = readFileSync(patch, "utf8");
    const before = [...files.values()];
    const changed = await changes(tree, patch, text, files);
    const truth = changed.flatMap(({ old, now }) => (isAnswer(old) ? changedFunctions(old, now) : []));
    if (truth.length > 0) {
      const query = patchQuery(text);
      yield {
        package: path.basename(dsc).split("_")[0] ?? dsc,
        patch: path.basename(patch),
        recalls: rankings.map((ranking) => {
          const found = trees.find(({ names }) => names === ranking.names)?.search(query, ranking.saturation, accepts);
          return recall(truth, (found ?? []).map(refId));
        }),
        grep: recall(truth, grepRanked(before.filter(isAnswer), query)),
      };
    }
    for (const tree of trees) {
      for (const { name } of changed) tree.follow(name, files.get(name));
      tree.settle();
    }
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

const accepts = ({ file, place }: EntityRef): boolean =>
  isAnswer(file) && file.source.entities[place]?.kind === "function";

/** Share of the true ones among the first five different answers. */
function recall(truth: readonly string[], answers: readonly string[]): number {
  const best = new Set([...new Set(answers)].slice(0, first));
  return truth.filter((id) => best.has(id)).length / truth.length;
}
