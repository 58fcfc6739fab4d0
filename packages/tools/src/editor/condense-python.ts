/**
 * A long Python file without the bodies of its functions and the middle of its classes' documentation, each line under its own number.
 * What counts as long is what agents of the skyrl profile have always seen.
 */
import { python } from "../code-search/languages/python.ts";
import { parseSource } from "../code-search/parse-source.ts";
import type { Condense } from "./profile.ts";

/** Shorter bodies stay. */
const leastBodyLines = 4;
const leastDocLines = 5;
/** Longer ones take too long to read on the way; they are shown from their beginning. */
const maxCharacters = 400_000;

export const condensePython: Condense = async (text) => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const all = lines.map((line, place) => [place + 1, line] as const);
  if (text.length > maxCharacters) return all;
  const { entities } = await parseSource("view.py", python, text);
  const elided = entities.flatMap(({ kind, bodyLine, endLine }): [from: number, to: number][] => {
    if (kind === "function") return endLine - bodyLine + 1 >= leastBodyLines ? [[bodyLine, endLine]] : [];
    const last = docEnd(lines, bodyLine);
    return last - bodyLine + 1 >= leastDocLines ? [[bodyLine + 1, last - 1]] : [];
  });
  const hidden = new Set(elided.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i)));
  const notices = elided.map(([from, to]) => [from, `... eliding lines ${from}-${to} ...`] as const);
  return [...notices, ...all.filter(([line]) => !hidden.has(line))].sort(([a], [b]) => a - b);
};

/** Last line of the documentation that begins there; the line before it when none does. */
function docEnd(lines: readonly string[], first: number): number {
  const mark = /^\s*[rRuU]?("""|''')/.exec(lines[first - 1] ?? "");
  const quotes = mark?.[1];
  if (mark === null || quotes === undefined) return first - 1;
  if ((lines[first - 1] ?? "").indexOf(quotes, mark[0].length) !== -1) return first;
  for (let line = first + 1; line <= lines.length; line++) if ((lines[line - 1] ?? "").includes(quotes)) return line;
  return first;
}
