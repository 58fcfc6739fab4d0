/**
 * A search over a view, in the words the model reads. Tests are answers like others but come last; every part of the answer is
 * bounded, and says so when it leaves something out.
 */
import { findEntities, findNear, type MatchKind, testsLast } from "./find-entities.ts";
import type { EntityRef, IndexedFile } from "./indexed-file.ts";
import { refId } from "./indexed-file.ts";
import { everyFile, inTree, pathMatcher } from "./path-pattern.ts";
import { findPattern } from "./pattern-search.ts";
import type { RelationName } from "./relation-names.ts";
import { Relations } from "./relations.ts";
import type { RepositoryView } from "./repository-view.ts";
import type { SearchRequest } from "./search-request.ts";
import { foldedLine, kindOf, numberedCode, showPreview, showWhole } from "./show-entity.ts";
import { findLines } from "./text-lines.ts";
import { searchText } from "./text-search.ts";

export interface SearchScene {
  readonly view: RepositoryView;
  /** Absolute path of the tree in its sandbox: agents may write it before paths. */
  readonly root: string;
  readonly isStopped: () => boolean;
}

const previewed = 3;
const folded = 30;
const linesShown = 20;
const filesCounted = 20;
const patternHits = 40;
const relationEdges = 80;

/** @returns "" only if nothing was asked */
export async function answerSearch(scene: SearchScene, request: SearchRequest): Promise<string> {
  const { view, root } = scene;
  const parts: string[] = [];
  const all = view.files();
  const within = pathMatcher(request.file_path_or_pattern, root);
  const chosen = all.filter(({ source }) => within(source.path));
  const files = chosen.length > 0 ? chosen : all;
  const asksAll = request.file_path_or_pattern === everyFile;
  if (chosen.length === 0 && !asksAll) {
    parts.push(`No source files match \`${request.file_path_or_pattern}\`. All files are searched instead.`);
  }
  const terms = (request.search_terms ?? []).filter((term) => term.trim() !== "");
  const lines = request.line_nums ?? [];
  if (lines.length > 0) parts.push(...answerLines(scene, request.file_path_or_pattern, chosen, lines));
  const relations = new Relations(view);
  for (const term of terms) {
    if (scene.isStopped()) break;
    const { relation } = request;
    const answer =
      relation === undefined
        ? answerTerm(scene, term, files, terms.length)
        : answerRelation(scene, relations, term, relation, request.depth ?? 1, files);
    parts.push(`${terms.length > 1 ? `##### ${term}\n` : ""}${answer}`);
  }
  if (request.pattern !== undefined && request.pattern.trim() !== "") {
    parts.push(await answerPattern(scene, request.pattern, files));
  }
  return parts.join("\n\n");
}

const sources: Readonly<Record<MatchKind, (term: string) => string>> = {
  id: (term) => `Exact match for \`${term}\`.`,
  name: (term) => `Match for the name \`${term}\`.`,
  caseless: (term) => `Match for the name \`${term}\`, in other letters.`,
  suffix: (term) => `Match for the end of a path, \`${term}\`.`,
  near: (term) => `Nothing is called \`${term}\`; this looks like it.`,
};

function answerTerm({ view, root }: SearchScene, term: string, files: readonly IndexedFile[], terms: number): string {
  const inFiles = new Set(files);
  const found = findEntities(view, term, root);
  const parts: string[] = [];
  if (found?.folder) parts.push(showFolder(view, found.folder));
  const here = found?.how === "id" ? found.refs : (found?.refs ?? []).filter(({ file }) => inFiles.has(file));
  // A name that is only elsewhere is better than none.
  const refs = here.length > 0 ? here : (found?.refs ?? []);
  if (found !== null && refs.length > 0) parts.push(showEntities(refs, sources[found.how](term), found.how === "id"));
  const exactPath = found?.how === "id" && (found.folder !== null || refs.some(({ place }) => place === -1));
  const text = exactPath ? null : answerText(files, term);
  if (text !== null) parts.push(text);
  if (parts.length > 0) return parts.join("\n\n");
  const near = findNear(view, term, previewed).filter(({ file }) => inFiles.has(file));
  if (near.length > 0) return showEntities(near, sources.near(term), false);
  return answerWords(view, term, inFiles, terms);
}

function showEntities(refs: readonly EntityRef[], source: string, exact: boolean): string {
  if (exact)
    return refs
      .slice(0, previewed)
      .map((ref) => showWhole(ref, source))
      .join("\n\n");
  if (refs.length <= previewed) return refs.map((ref) => showPreview(ref, source)).join("\n\n");
  const more = refs.length > folded ? `\n... and ${refs.length - folded} more` : "";
  const [first] = refs;
  return (
    `Found ${refs.length} of that name.\nSource: ${source}\n${refs.slice(0, folded).map(foldedLine).join("\n")}${more}\n` +
    `Hint: Search one of them by its id, such as \`${first === undefined ? "" : refId(first)}\`, to see its code.`
  );
}

/** Null: the text is nowhere. */
function answerText(files: readonly IndexedFile[], term: string): string | null {
  const hits = findLines(files, term.trim(), filesCounted + 1);
  const [first] = hits;
  if (first === undefined) return null;
  const source = "Source: the text itself, in any letters.";
  if (hits.length === 1) {
    const { lines } = first;
    const more = lines.length > linesShown ? ` ... and ${lines.length - linesShown} more` : "";
    return (
      `Found ${lines.length} matching line${lines.length === 1 ? "" : "s"} in \`${first.file.source.path}\`: ` +
      `${lines.slice(0, linesShown).join(", ")}${more}\n${source}\n` +
      "Hint: Give that file and these lines as line_nums to see what they are in."
    );
  }
  if (hits.length > filesCounted) {
    return (
      `Found the text in more than ${filesCounted} files.\n${source}\n` +
      "Hint: Narrow the search with file_path_or_pattern, or take a longer text."
    );
  }
  const counts = hits.map(({ file, lines }) => `- \`${file.source.path}\`: ${lines.length}`).join("\n");
  return (
    `Found the text in ${hits.length} files, matching lines in each:\n${counts}\n${source}\n` +
    "Hint: Narrow the search to one of them with file_path_or_pattern to see the lines."
  );
}

function answerWords(view: RepositoryView, term: string, inFiles: ReadonlySet<IndexedFile>, terms: number): string {
  const shown = terms > 1 ? 5 : 10;
  const hits = searchText(view, term, { limit: shown, accepts: ({ file }) => inFiles.has(file) });
  const [first] = hits;
  if (first === undefined) {
    return `Nothing was found for \`${term}\`.\nHint: Try a part of a name, or other words for what the code does.`;
  }
  const list = hits.map((ref) => {
    const doc = ref.file.source.entities[ref.place]?.doc ?? "";
    return `${foldedLine(ref)}${doc === "" ? "" : `: ${doc}`}`;
  });
  return (
    `Nothing is called \`${term}\`; ranked by its words:\n${list.join("\n")}\nSource: words of names, comments and code.\n` +
    `Hint: Search one of them by its id, such as \`${refId(first)}\`, to see its code.`
  );
}

function showFolder(view: RepositoryView, folder: string): string {
  const prefix = `${folder}/`;
  const inside = view.files().filter(({ source }) => source.path.startsWith(prefix));
  const names = [...new Set(inside.map(({ source }) => source.path.slice(prefix.length).replace(/\/.*$/, "/")))];
  const shown = names.slice(0, folded * 2);
  const more = names.length > shown.length ? `\n... and ${names.length - shown.length} more` : "";
  return (
    `Found directory \`${folder}\` with ${inside.length} source files.\n${shown.map((name) => `- ${prefix}${name}`).join("\n")}${more}\n` +
    `Hint: Search one of these paths to see its parts.`
  );
}

const contextLines = 10;

function answerLines(
  { root }: SearchScene,
  given: string,
  chosen: readonly IndexedFile[],
  lines: readonly number[],
): string[] {
  const exact = chosen.filter(({ source }) => source.path === inTree(given, root));
  const [file, another] = exact.length > 0 ? exact : chosen;
  if (file === undefined || another !== undefined) {
    return [`line_nums needs one file in file_path_or_pattern; \`${given}\` matches ${chosen.length} source files.`];
  }
  const answers = new Map<string, string>();
  for (const line of lines) {
    const { source } = file;
    if (line > source.lines) {
      answers.set(`past ${line}`, `\`${source.path}\` has ${source.lines} lines; there is no line ${line}.`);
      continue;
    }
    const place = source.entities.findLastIndex((entity) => entity.startLine <= line && line <= entity.endLine);
    const from = Math.max(1, line - contextLines);
    const to = Math.min(source.lines, line + contextLines);
    if (place === -1) {
      answers.set(
        `around ${line}`,
        `Line ${line} of \`${source.path}\` is in no function or class.\n${numberedCode(source.text, from, to)}`,
      );
    } else if (!answers.has(`in ${place}`)) {
      const ref = { file, place };
      const what = `Line ${line} is in it.`;
      answers.set(`in ${place}`, kindOf(ref) === "function" ? showWhole(ref, what) : around(ref, line, what));
    }
  }
  return [...answers.values()];
}

/** A line of a class that is in none of its methods. */
function around(ref: EntityRef, line: number, what: string): string {
  const { source } = ref.file;
  const entity = source.entities[ref.place];
  const from = Math.max(entity?.startLine ?? 1, line - contextLines);
  const to = Math.min(entity?.endLine ?? source.lines, line + contextLines);
  return `${foldedLine(ref).slice(2)}: ${what}\n${numberedCode(source.text, from, to)}\nHint: Search \`${refId(ref)}\` to see all of it.`;
}

function answerRelation(
  { view, root }: SearchScene,
  relations: Relations,
  term: string,
  relation: RelationName,
  depth: number,
  files: readonly IndexedFile[],
): string {
  const found = findEntities(view, term, root);
  const inFiles = new Set(files);
  const here = (found?.refs ?? []).filter(({ file }) => inFiles.has(file));
  const refs = testsLast(here.length > 0 ? here : (found?.refs ?? []));
  if (refs.length === 0) {
    const near = findNear(view, term, previewed).map((ref) => `\`${refId(ref)}\``);
    const instead = near.length === 0 ? "" : ` Near names: ${near.join(", ")}.`;
    return `Nothing is called \`${term}\`, so nothing is related to it.${instead}`;
  }
  const budget = { left: relationEdges };
  const answers = refs.slice(0, previewed).map((ref) => {
    const lines = edgesOf(relations, ref, relation, depth, new Set([refId(ref)]), budget, "  ");
    const text = lines.length === 0 ? "  (none that could be told)" : lines.join("\n");
    return `${foldedLine(ref).slice(2)} ${relation}:\n${text}`;
  });
  const more = refs.length > previewed ? `\n${refs.length - previewed} more are called so: give the whole id.` : "";
  const cut = budget.left <= 0 ? `\nOnly the first ${relationEdges} are shown.` : "";
  return `${answers.join("\n\n")}${more}${cut}\nHint: Search one of these ids to see its code, or take another relation or depth.`;
}

function edgesOf(
  relations: Relations,
  ref: EntityRef,
  relation: RelationName,
  depth: number,
  seen: Set<string>,
  budget: { left: number },
  indent: string,
): string[] {
  const lines: string[] = [];
  for (const next of relations.neighbours(ref, relation)) {
    if (budget.left <= 0) break;
    budget.left -= 1;
    const id = refId(next);
    const known = seen.has(id);
    lines.push(`${indent}${foldedLine(next)}${known ? " (see above)" : ""}`);
    if (known) continue;
    seen.add(id);
    if (depth > 1) lines.push(...edgesOf(relations, next, relation, depth - 1, seen, budget, `${indent}  `));
  }
  return lines;
}

async function answerPattern(
  { isStopped }: SearchScene,
  pattern: string,
  files: readonly IndexedFile[],
): Promise<string> {
  const ordered = [...files].sort((a, b) => Number(a.test) - Number(b.test));
  const { hits, cut, trouble } = await findPattern(ordered, pattern, { limit: patternHits, isStopped });
  if (hits.length === 0) {
    const why = trouble === null ? "" : ` The pattern could not be read: ${trouble.slice(0, 300)}.`;
    return (
      `No code matches the pattern \`${pattern}\`.${why}\n` +
      "Hint: A pattern is code of the language itself; `$X` stands for one part and `$$$XS` for any number of them."
    );
  }
  const byFile = new Map<string, string[]>();
  for (const { file, line, endLine } of hits) {
    const text = (file.source.text.split("\n")[line - 1] ?? "").trim().slice(0, 160);
    const span = endLine > line ? `${line}-${endLine}` : `${line}`;
    byFile.set(file.source.path, [...(byFile.get(file.source.path) ?? []), `  ${span}: ${text}`]);
  }
  const list = [...byFile].map(([path, lines]) => `\`${path}\`\n${lines.join("\n")}`).join("\n");
  const head = cut
    ? `More than ${hits.length} places match the pattern; the first are:`
    : `${hits.length} places match the pattern:`;
  const hint = cut
    ? "Hint: Narrow the search with file_path_or_pattern, or say more in the pattern."
    : "Hint: Give a file and its lines as line_nums to see what they are in.";
  return `${head}\n${list}\n${hint}`;
}
