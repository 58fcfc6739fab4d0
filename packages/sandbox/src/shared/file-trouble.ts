/** What the complaint of a program says about a file: one table for all runtimes that work by commands. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type FileFailure, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";

const texts: readonly (readonly [RegExp, FileFailure])[] = [
  [/no space left|disk quota exceeded|file too large|file size limit/i, "no_space"],
  [/is a directory/i, "is_directory"],
  [/not a directory|file exists/i, "not_a_directory"],
  // Busy: a place that something is mounted on (`/etc/hostname` of a container) can't be renamed over.
  [/permission denied|operation not permitted|read-only file system|text file busy|resource busy/i, "denied"],
  [/file name too long|too many levels of symbolic links|invalid argument/i, "bad_path"],
  [/does not look like a tar|unexpected eof|short read|invalid tar|corrupted/i, "bad_archive"],
  [/no such file|nonexistent|cannot stat/i, "not_found"],
];

/** Codes of the scripts of `files-by-exec`, and of a shell whose program met the limit of a file's size. */
const codes: Readonly<Record<number, readonly [FileFailure, string]>> = {
  91: ["is_directory", "is a directory"],
  92: ["bad_path", "is no plain file"],
  93: ["not_found", "is a link to nothing"],
  94: ["no_space", "did not fit"],
  153: ["no_space", "is larger than a file may be"],
};

/** @returns a SandboxFileError, or where the complaint is none about a file a BoundaryError("sandbox", "unavailable") */
export function fileTrouble(path: string, exitCode: number | null, complaint: string): Error {
  const known = codes[exitCode ?? -1];
  if (known !== undefined) return new SandboxFileError(known[0], path, `${path} ${known[1]}`);
  const said = complaint.replace(/tar-ended:\d+\s*$/, "").trim();
  for (const [pattern, code] of texts) {
    if (pattern.test(said)) return new SandboxFileError(code, path, `${path}: ${lastLine(said)}`);
  }
  const how = exitCode === null ? "was ended" : `ended with ${exitCode}`;
  const message = `${path}: the command for it ${how}${said === "" ? "" : ` (${lastLine(said)})`}`;
  return new BoundaryError("sandbox", "unavailable", message);
}

const lastLine = (text: string): string => (text.split("\n").at(-1) ?? "").slice(0, 300);
