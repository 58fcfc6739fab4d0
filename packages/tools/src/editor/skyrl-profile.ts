/**
 * The editor script of SkyRL-Agent. It differs from its model where that harmed files: tabs are never expanded, neither in the
 * file nor in what is shown of it.
 */

import { textStart } from "../text-place.ts";
import { splitLines } from "./edit-text.ts";
import { type Condense, clipped, type EditorProfile, EditRefusal, numbered, snippetLines } from "./profile.ts";
import { similarLines } from "./similar-lines.ts";

const maxCharacters = 10_000;
const condensedFromLines = 110;
const clippedFile =
  "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this tool after you " +
  "have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";

const clip = (text: string): string => clipped(text, maxCharacters, clippedFile);
const catN = (text: string, subject: string, firstLine = 1): string =>
  `Here's the result of running \`cat -n\` on ${subject}:\n${numbered(clip(text), firstLine)}\n`;
const range = (numbers: readonly number[]): string => `[${numbers.join(", ")}]`;
const suffixOf = (path: string): string => /\.[^./]+$/.exec(path)?.[0] ?? "";
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

export const skyrlProfile: EditorProfile = {
  // Its history has no bound; this one keeps the sandbox's disk.
  undoDepth: 100,
  triesStripped: false,
  listsOverlapping: true,
  insertLimit: (text) => splitLines(text).length,
  createUndoesTo: "empty",

  failure: (message) => `ERROR: ${message}`,
  unknownCommand: (command) =>
    `Unrecognized command '${command}'. Allowed commands: view, create, str_replace, insert, undo_edit.`,
  missingArgument: (command, argument) =>
    command === "create"
      ? `Cannot create file without '${argument}' parameter.`
      : `Missing required parameter '${argument}' for '${command}'.`,
  relativePath: () => null,
  exists: (path) => `File already exists at: ${path}. Cannot overwrite with 'create'.`,
  missing: (path) => `The path '${path}' does not exist.`,
  folder: (path) => `The path '${path}' is a directory. Only 'view' can be used on directories.`,
  tooLarge: (path, bytes, maxBytes) => `Failed to read file ${path}: it has ${bytes} bytes, more than ${maxBytes}`,
  binary: (path) => `Failed to read file ${path}: it is a binary file`,
  unreadable: (path, why) => `Failed to read file ${path}: ${why}`,
  unwritable: (path, why, command) =>
    command === "create" ? `Error creating file at ${path}: ${why}` : `Failed to write file ${path}: ${why}`,
  equalTexts: () => null,
  noMatch: (wanted, path, text) => {
    const [first = ""] = wanted.trim().split("\n");
    const similar = first === "" ? [] : similarLines(first, splitLines(text), 3);
    const hint =
      similar.length === 0
        ? ""
        : `\nPossible similar lines:\n${similar.map((line) => `- ${textStart(line, 120)}`).join("\n")}`;
    return `No occurrences of '${wanted}' found in ${path} for replacement.${hint}`;
  },
  severalMatches: (wanted, _path, lines) =>
    `Multiple occurrences of '${wanted}' found in lines ${range(lines)}. ` +
    "Please ensure it is unique before using str_replace.",
  badInsertLine: (line, limit) => `Invalid insert_line ${line}. Must be in [0, ${limit}].`,
  noHistory: (path) => `No previous edits found for ${path} to undo.`,

  created: (path, text) =>
    `File created at ${path}. ${catN(text, path)}` +
    "Review the file and make sure that it is as expected. Edit the file if necessary.",
  replaced: (path, text, line, replacement) => {
    const first = Math.max(0, line - 1 - snippetLines);
    const last = line - 1 + snippetLines + replacement.split("\n").length - 1;
    const snippet = splitLines(text)
      .slice(first, last + 1)
      .join("\n");
    return (
      `The file ${path} has been edited. ${catN(snippet, `a snippet of ${path}`, first + 1)}` +
      "Review the changes and make sure they are as expected. Edit the file again if necessary."
    );
  },
  inserted: (path, text, after, added) => {
    const first = Math.max(0, after - snippetLines);
    const snippet = splitLines(text)
      .slice(first, after + added.split("\n").length + snippetLines)
      .join("\n");
    return (
      `The file ${path} has been edited. ` +
      catN(snippet, "a snippet of the edited file", Math.max(1, after - snippetLines + 1)) +
      "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). " +
      "Edit the file again if necessary."
    );
  },
  undone: (path, text) => `Last edit to ${path} undone successfully. ${catN(text, path)}`,
  // The doubled prefix is how agents have always seen it.
  hidden: (path) =>
    [".py", ".diff"].includes(suffixOf(path))
      ? null
      : `ERROR: Viewing non-Python files is disallowed for saving context. File '${nameOf(path)}' is not a .py file.`,
  viewFile: async (path, text, wanted, condense) => {
    const short = wanted !== null && wanted.length > 0;
    const whole = textLines(text);
    const condensed = suffixOf(path) === ".py" && !short && whole.length > condensedFromLines;
    const lines = condensed ? await condense(text) : whole.map((line, place) => [place + 1, line] as const);
    const shown = short ? linesInRange(lines, wanted) : lines;
    if (suffixOf(path) === ".diff") return shown.map(([, line]) => line).join("\n");
    const head = condensed
      ? `Here is a condensed view for file: ${path}; [Note: Useful for understanding file structure in a concise manner. Please use ` +
        "specific view_range without concise cmd if you want to explore further into the relevant parts.]\n"
      : `Here's the result of running \`cat -n\` on the file: ${path}:\n`;
    return clip(`${head}${shown.map(([line, words]) => `${String(line).padStart(6)} ${words}`).join("\n")}`);
  },
  viewFolder: (path, entries) => {
    const under = (entry: string): string => entry.slice(path === "/" ? 1 : path.length + 1);
    const shown = entries.filter(
      (entry) => !/(^|\/)\./.test(under(entry.path)) && (entry.folder || suffixOf(entry.path) === ".py"),
    );
    const lines = [path, ...shown.map((entry) => entry.path)];
    return clip(
      `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden:\n${lines.join("\n")}\n`,
    );
  },
};

/** As Python's `splitlines` for \n and \r\n. */
function textLines(text: string): string[] {
  const lines = splitLines(text);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

type Lines = Awaited<ReturnType<Condense>>;

function linesInRange(lines: Lines, wanted: readonly number[]): Lines {
  const [start = 0, end = 0] = wanted;
  if (wanted.length !== 2) return lines;
  if (start < 1 || start > lines.length) {
    throw new EditRefusal(`Invalid view_range ${range(wanted)}: start line must be in [1, ${lines.length}]`);
  }
  if (end !== -1 && (end < start || end > lines.length)) {
    throw new EditRefusal(
      `Invalid view_range ${range(wanted)}: end must be >= start and <= ${lines.length}, or -1 to view until end.`,
    );
  }
  return lines.filter(([line]) => line >= start && (end === -1 || line <= end));
}
