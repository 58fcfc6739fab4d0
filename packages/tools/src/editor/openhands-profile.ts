/** The editor of the OpenHands agents. */
import { countLines, splitLines } from "./edit-text.ts";
import { clipped, type EditorProfile, EditRefusal, numbered, snippetLines } from "./profile.ts";

const maxCharacters = 16_000;
const clippedFile =
  "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool " +
  "after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
const clippedFolder =
  "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls -la` " +
  "instead to view large directories incrementally.</NOTE>";

const commands = ["view", "create", "str_replace", "insert", "undo_edit"];
const invalid = (parameter: string, value: string, hint: string): string =>
  `Invalid \`${parameter}\` parameter: ${value}. ${hint}`;
const invalidFile = (path: string, reason: string): string => `File validation failed for ${path}: ${reason}`;
const list = (numbers: readonly number[]): string => `[${numbers.join(", ")}]`;
const megabytes = (bytes: number): number => bytes / 1024 / 1024;

const catN = (text: string, subject: string, firstLine = 1): string =>
  `Here's the result of running \`cat -n\` on ${subject}:\n` +
  `${numbered(clipped(text, maxCharacters, clippedFile), firstLine)}\n`;

/** Lines from..to (from 1), each with its end. */
function linesOf(text: string, from: number, to: number): string {
  const lines = splitLines(text);
  const whole = lines.slice(from - 1, to).join("\n");
  return to < lines.length ? `${whole}\n` : whole;
}

export const openhandsProfile: EditorProfile = {
  undoDepth: 10,
  triesStripped: true,
  listsOverlapping: false,
  insertLimit: countLines,
  createUndoesTo: "itself",

  failure: (message) => `ERROR:\n${message}`,
  unknownCommand: (command) =>
    `Unrecognized command ${command}. The allowed commands for the str_replace_editor tool are: ${commands.join(", ")}`,
  missingArgument: (command, argument) => `Parameter \`${argument}\` is required for command: ${command}.`,
  relativePath: (path, existing) =>
    invalid(
      "path",
      path,
      `The path should be an absolute path, starting with \`/\`.${existing === null ? "" : ` Maybe you meant ${existing}?`}`,
    ),
  exists: (path) =>
    invalid("path", path, `File already exists at: ${path}. Cannot overwrite files using command \`create\`.`),
  missing: (path) => invalid("path", path, `The path ${path} does not exist. Please provide a valid path.`),
  folder: (path) =>
    invalid("path", path, `The path ${path} is a directory and only the \`view\` command can be used on directories.`),
  tooLarge: (path, bytes, maxBytes) =>
    invalidFile(
      path,
      `File is too large (${megabytes(bytes).toFixed(1)}MB). Maximum allowed size is ${Math.floor(megabytes(maxBytes))}MB.`,
    ),
  binary: (path) =>
    invalidFile(path, "File appears to be binary and this file type cannot be read or edited by this tool."),
  unreadable: (path, why) => `Ran into ${why} while trying to read ${path}`,
  unwritable: (path, why) => `Ran into ${why} while trying to write to ${path}`,
  equalTexts: (text) =>
    invalid("new_str", text, "No replacement was performed. `new_str` and `old_str` must be different."),
  noMatch: (wanted, path) => `No replacement was performed, old_str \`${wanted}\` did not appear verbatim in ${path}.`,
  severalMatches: (wanted, _path, lines) =>
    `No replacement was performed. Multiple occurrences of old_str \`${wanted}\` in lines ` +
    `${list([...new Set(lines)])}. Please ensure it is unique.`,
  badInsertLine: (line, limit) =>
    invalid("insert_line", String(line), `It should be within the range of allowed values: [0, ${limit}]`),
  noHistory: (path) => `No edit history found for ${path}.`,

  created: (path) => `File created successfully at: ${path}`,
  replaced: (path, text, line, replacement) => {
    const before = Math.max(0, line - snippetLines);
    const snippet = linesOf(text, before + 1, line + snippetLines + replacement.split("\n").length - 1);
    return (
      `The file ${path} has been edited. ${catN(snippet, `a snippet of ${path}`, before + 1)}` +
      "Review the changes and make sure they are as expected. Edit the file again if necessary."
    );
  },
  inserted: (path, text, after, added) => {
    const before = Math.max(0, after - snippetLines);
    const last = Math.min(countLines(text), after + snippetLines + added.split("\n").length);
    return (
      `The file ${path} has been edited. ` +
      catN(linesOf(text, before + 1, last), "a snippet of the edited file", before + 1) +
      "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). " +
      "Edit the file again if necessary."
    );
  },
  undone: (path, text) => `Last edit to ${path} undone successfully. ${catN(text, path)}`,
  hidden: () => null,
  viewFile: async (path, text, range) => {
    if (range === null || range.length === 0) return catN(text, path);
    const [first, last, over] = checkedRange(range, countLines(text));
    const shown = splitLines(text)
      .slice(first - 1, last)
      .join("\n");
    const note = over === null ? "" : `\nNOTE: ${over}\n`;
    return `${catN(shown, path, first)}${note}`;
  },
  viewFolder: (path, entries, range) => {
    if (range !== null && range.length > 0) {
      const hint = "The `view_range` parameter is not allowed when `path` points to a directory.";
      throw new EditRefusal(invalid("view_range", list(range), hint));
    }
    const hiddenHere = entries.filter((entry) => /^\.[^/]*$/.test(below(path, entry.path))).length;
    const shown = entries.filter((entry) => !/(^|\/)\./.test(below(path, entry.path)));
    const lines = [`${path}/`, ...shown.map((entry) => (entry.folder ? `${entry.path}/` : entry.path))];
    const head = `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:\n`;
    const rest =
      hiddenHere === 0
        ? ""
        : `\n\n${hiddenHere} hidden files/directories in this directory are excluded. ` +
          `You can use 'ls -la ${path}' to see them.`;
    return `${head}${clipped(lines.join("\n"), maxCharacters, clippedFolder)}${rest}`;
  },
};

/** Path under a folder, without it. */
const below = (folder: string, path: string): string => path.slice(folder === "/" ? 1 : folder.length + 1);

function checkedRange(range: readonly number[], lines: number): [first: number, last: number, note: string | null] {
  const refuse = (hint: string): EditRefusal => new EditRefusal(invalid("view_range", list(range), hint));
  const [first, last] = range;
  if (range.length !== 2 || first === undefined || last === undefined) {
    throw refuse("It should be a list of two integers.");
  }
  if (first < 1 || first > lines) {
    throw refuse(`Its first element \`${first}\` should be within the range of lines of the file: [1, ${lines}].`);
  }
  const end = last === -1 ? lines : Math.min(last, lines);
  if (end < first) {
    throw refuse(`Its second element \`${last}\` should be greater than or equal to the first element \`${first}\`.`);
  }
  const note = last > lines ? `We only show up to ${lines} since there's only ${lines} lines in this file` : null;
  return [first, end, note];
}
