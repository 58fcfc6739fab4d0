/**
 * How an editor speaks and what it forgives. Agents are trained on exact texts: a profile is the words of one editor they know,
 * and every text of the tool comes from it. Pure.
 */
import { textStart } from "../text-place.ts";

/** The edit was not made; the message is what the model reads, without the profile's prefix. */
export class EditRefusal extends Error {
  override readonly name = "EditRefusal";
}

/** Why a file can't be read or written, as the operating system says it. */
export const osReasons = {
  missing: { number: 2, words: "No such file or directory" },
  failed: { number: 5, words: "Input/output error" },
  denied: { number: 13, words: "Permission denied" },
  notFolder: { number: 20, words: "Not a directory" },
  folder: { number: 21, words: "Is a directory" },
  invalid: { number: 22, words: "Invalid argument" },
  full: { number: 28, words: "No space left on device" },
} as const;
export type OsReason = keyof typeof osReasons;

/** As Python prints an OSError. */
export const osError = (reason: OsReason, path: string): string =>
  `[Errno ${osReasons[reason].number}] ${osReasons[reason].words}: '${path}'`;

export interface FolderEntry {
  readonly path: string;
  readonly folder: boolean;
}

/** Elides what a long file can do without: [line from 1, text] in order. */
export type Condense = (text: string) => Promise<readonly (readonly [line: number, text: string])[]>;

export interface EditorProfile {
  /** Edits of one file that can be undone. */
  readonly undoDepth: number;
  /** A text that is not found is tried again without blanks around it. */
  readonly triesStripped: boolean;
  /** Where the multiple-occurrence text lists every place, also those inside one another. */
  readonly listsOverlapping: boolean;
  /** Lines of the file that insert_line may name: as a reader counts them, or as they are split. */
  insertLimit(text: string): number;
  /** What `undo_edit` goes back to after `create`: the same file, or an empty one. */
  readonly createUndoesTo: "itself" | "empty";

  failure(message: string): string;
  unknownCommand(command: string): string;
  missingArgument(command: string, argument: string): string;
  /** Null: a relative path is one from the sandbox's folder. */
  relativePath(path: string, existing: string | null): string | null;
  exists(path: string): string;
  missing(path: string): string;
  folder(path: string): string;
  tooLarge(path: string, bytes: number, maxBytes: number): string;
  binary(path: string): string;
  unreadable(path: string, why: string): string;
  unwritable(path: string, why: string, command: string): string;
  /** Null: such an edit is made and changes nothing. */
  equalTexts(text: string): string | null;
  noMatch(wanted: string, path: string, text: string): string;
  severalMatches(wanted: string, path: string, lines: readonly number[]): string;
  badInsertLine(line: number, limit: number): string;
  noHistory(path: string): string;

  created(path: string, text: string): string;
  replaced(path: string, text: string, line: number, replacement: string): string;
  inserted(path: string, text: string, after: number, added: string): string;
  undone(path: string, text: string): string;
  /** Null, or why this file is not shown. */
  hidden(path: string): string | null;
  /** @throws EditRefusal for a range that can't be shown */
  viewFile(path: string, text: string, range: readonly number[] | null, condense: Condense): Promise<string>;
  /** Entries by path, the folder itself not among them. @throws EditRefusal for a range */
  viewFolder(path: string, entries: readonly FolderEntry[], range: readonly number[] | null): string;
}

/** As `cat -n`. */
export const numbered = (text: string, firstLine: number): string =>
  text
    .split("\n")
    .map((line, place) => `${String(place + firstLine).padStart(6)}\t${line}`)
    .join("\n");

/** The first characters, and what is said in place of the rest. */
export const clipped = (text: string, maxCharacters: number, notice: string): string =>
  text.length <= maxCharacters ? text : `${textStart(text, maxCharacters)}${notice}`;

export const snippetLines = 4;
