/**
 * A unified diff as files, hunks and lines. A stranger wrote it: nothing in it is trusted, a line belongs to a hunk by the hunk's own
 * counts (a removed line `-- x` reads `--- x`), and what can't be read is counted, not guessed. Pure.
 */
import { readPath } from "./patch-path.ts";

export interface PatchLine {
  readonly kind: "context" | "added" | "removed" | "note";
  /** Without its mark. */
  readonly text: string;
  readonly oldLine: number | null;
  readonly newLine: number | null;
}
export interface PatchHunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** As the diff has it, `@@ … @@` with what follows. */
  readonly header: string;
  readonly lines: PatchLine[];
}
export interface PatchFile {
  /** Null where there was, or is, none. */
  oldPath: string | null;
  newPath: string | null;
  change: "added" | "deleted" | "renamed" | "copied" | "changed";
  oldMode: string | null;
  newMode: string | null;
  binary: boolean;
  added: number;
  removed: number;
  readonly hunks: PatchHunk[];
}
export interface Patch {
  readonly files: readonly PatchFile[];
  readonly added: number;
  readonly removed: number;
  /** Lines that belong to no file and no hunk. */
  readonly strayLines: number;
  /** The text ended inside a hunk, or has more lines than are read. */
  readonly cut: boolean;
}

export const maxPatchLines = 200_000;
const hunkHeader = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/u;

export function parsePatch(text: string): Patch {
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  const lines = all.slice(0, maxPatchLines);
  const files: PatchFile[] = [];
  let stray = 0;
  let cut = all.length > lines.length;
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const file = files.at(-1);
    if (line.startsWith("diff --git ") || startsPlainFile(lines, at, file)) {
      const read = readFileHeader(lines, at);
      files.push(read.file);
      at = read.next;
    } else if (file && hunkHeader.test(line)) {
      const read = readHunk(lines, at, file);
      cut ||= read.cut;
      at = read.next;
    } else {
      if (line.trim() !== "") stray += 1;
      at += 1;
    }
  }
  const sum = (of: (file: PatchFile) => number) => files.reduce((total, file) => total + of(file), 0);
  return { files, added: sum((file) => file.added), removed: sum((file) => file.removed), strayLines: stray, cut };
}

/** `---` and `+++` without a line of git before them. */
function startsPlainFile(lines: readonly string[], at: number, file: PatchFile | undefined): boolean {
  if (!lines[at]?.startsWith("--- ") || !lines[at + 1]?.startsWith("+++ ")) return false;
  return file === undefined || file.hunks.length > 0 || file.binary;
}

function readFileHeader(lines: readonly string[], from: number): { file: PatchFile; next: number } {
  const file: PatchFile = {
    oldPath: null,
    newPath: null,
    change: "changed",
    oldMode: null,
    newMode: null,
    binary: false,
    added: 0,
    removed: 0,
    hunks: [],
  };
  let at = from;
  const first = lines[at] ?? "";
  if (first.startsWith("diff --git ")) {
    [file.oldPath, file.newPath] = namesOfGitLine(first.slice("diff --git ".length));
    at += 1;
  }
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.startsWith("diff --git ") || hunkHeader.test(line)) break;
    if (line === "GIT binary patch") return { file: { ...file, binary: true }, next: afterBinary(lines, at + 1) };
    if (!readHeaderLine(file, line)) break;
  }
  return { file, next: Math.max(at, from + 1) };
}

const headers: readonly (readonly [prefix: string, read: (file: PatchFile, rest: string) => unknown])[] = [
  ["--- ", (file, rest) => setOld(file, readPath(rest, "a/"))],
  ["+++ ", (file, rest) => setNew(file, readPath(rest, "b/"))],
  ["old mode ", (file, rest) => Object.assign(file, { oldMode: rest })],
  ["new mode ", (file, rest) => Object.assign(file, { newMode: rest })],
  ["new file mode ", (file, rest) => Object.assign(file, { change: "added", newMode: rest, oldPath: null })],
  ["deleted file mode ", (file, rest) => Object.assign(file, { change: "deleted", oldMode: rest, newPath: null })],
  ["rename from ", (file, rest) => Object.assign(file, { change: "renamed", oldPath: readPath(rest, "") })],
  ["rename to ", (file, rest) => Object.assign(file, { change: "renamed", newPath: readPath(rest, "") })],
  ["copy from ", (file, rest) => Object.assign(file, { change: "copied", oldPath: readPath(rest, "") })],
  ["copy to ", (file, rest) => Object.assign(file, { change: "copied", newPath: readPath(rest, "") })],
  ["similarity index ", () => undefined],
  ["dissimilarity index ", () => undefined],
  ["index ", () => undefined],
  ["Binary files ", (file) => Object.assign(file, { binary: true })],
];

/** @returns whether it is a line of a file's header */
function readHeaderLine(file: PatchFile, line: string): boolean {
  const known = headers.find(([prefix]) => line.startsWith(prefix));
  known?.[1](file, line.slice(known[0].length));
  return known !== undefined;
}

function setOld(file: PatchFile, path: string | null): void {
  file.oldPath = path;
  if (path === null) file.change = "added";
}
function setNew(file: PatchFile, path: string | null): void {
  file.newPath = path;
  if (path === null) file.change = "deleted";
}

/** `a/x b/x`: only equal names can be told apart without marks; what follows in the header says others. */
function namesOfGitLine(rest: string): [string | null, string | null] {
  if (rest.startsWith('"')) {
    const end = rest.indexOf('" ', 1);
    return end < 0 ? [null, null] : [readPath(rest.slice(0, end + 1), "a/"), readPath(rest.slice(end + 2), "b/")];
  }
  const half = (rest.length - 1) / 2;
  const [old, now] = [rest.slice(0, half), rest.slice(half + 1)];
  if (rest[half] === " " && old.slice(2) === now.slice(2)) return [readPath(old, "a/"), readPath(now, "b/")];
  const space = rest.indexOf(" b/");
  return space < 0 ? [null, null] : [readPath(rest.slice(0, space), "a/"), readPath(rest.slice(space + 1), "b/")];
}

/** Past the blocks of a binary patch: each is `literal n` or `delta n`, lines of base 85, and a blank line. */
function afterBinary(lines: readonly string[], from: number): number {
  let at = from;
  while (at < lines.length && /^(?:literal|delta) \d+$/u.test(lines[at] ?? "")) {
    while (at < lines.length && lines[at] !== "") at += 1;
    at += 1;
  }
  return at;
}

function readHunk(lines: readonly string[], from: number, file: PatchFile): { next: number; cut: boolean } {
  const header = lines[from] ?? "";
  const [, oldStart = "0", oldCount = "1", newStart = "0", newCount = "1"] = hunkHeader.exec(header) ?? [];
  const hunk: PatchHunk = { header, oldStart: Number(oldStart), newStart: Number(newStart), lines: [] };
  file.hunks.push(hunk);
  let [oldLine, newLine] = [hunk.oldStart, hunk.newStart];
  const [oldEnd, newEnd] = [oldLine + Number(oldCount), newLine + Number(newCount)];
  let at = from + 1;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const text = line.slice(1);
    if (line.startsWith("\\")) hunk.lines.push({ kind: "note", text: text.trim(), oldLine: null, newLine: null });
    else if (oldLine >= oldEnd && newLine >= newEnd) break;
    else if (line.startsWith("+") && newLine < newEnd) {
      hunk.lines.push({ kind: "added", text, oldLine: null, newLine: newLine++ });
      file.added += 1;
    } else if (line.startsWith("-") && oldLine < oldEnd) {
      hunk.lines.push({ kind: "removed", text, oldLine: oldLine++, newLine: null });
      file.removed += 1;
    } else if ((line.startsWith(" ") || line === "") && oldLine < oldEnd && newLine < newEnd)
      hunk.lines.push({ kind: "context", text, oldLine: oldLine++, newLine: newLine++ });
    else break;
  }
  return { next: at, cut: oldLine < oldEnd || newLine < newEnd };
}
