/** The rows of a patch in one list, as they scroll by. Pure. */
import type { Patch, PatchFile, PatchLine } from "./parse-patch.ts";

export type PatchRow =
  | { readonly kind: "file"; readonly file: PatchFile; readonly index: number }
  | { readonly kind: "hunk"; readonly header: string; readonly index: number }
  | { readonly kind: "line"; readonly line: PatchLine; readonly index: number }
  | { readonly kind: "empty"; readonly words: string; readonly index: number };

export const pathOf = (file: PatchFile): string => file.newPath ?? file.oldPath ?? "(no name)";

export function patchRows({ files }: Pick<Patch, "files">): PatchRow[] {
  const rows: PatchRow[] = [];
  for (const [index, file] of files.entries()) {
    rows.push({ kind: "file", file, index });
    for (const hunk of file.hunks) {
      rows.push({ kind: "hunk", header: hunk.header, index });
      for (const line of hunk.lines) rows.push({ kind: "line", line, index });
    }
    const words = withoutLines(file);
    if (file.hunks.length === 0) rows.push({ kind: "empty", words, index });
  }
  return rows;
}

function withoutLines(file: PatchFile): string {
  if (file.binary) return "Binary file: its bytes are in the raw patch.";
  if (file.change === "renamed") return "Moved without a change.";
  if (file.change === "copied") return "Copied without a change.";
  if (file.change === "added") return "An empty file.";
  if (file.change === "deleted") return "It was empty.";
  return file.oldMode !== file.newMode ? "Only its mode changed." : "No lines.";
}

/** What happened to it besides its lines, in words; "" where nothing did. */
export function changeWords(file: PatchFile): string {
  const words: string[] = [];
  if (file.change !== "changed") words.push(file.change);
  if (file.change === "renamed" || file.change === "copied") words.push(`from ${file.oldPath ?? "?"}`);
  if (file.oldMode !== null && file.newMode !== null && file.oldMode !== file.newMode)
    words.push(`mode ${file.oldMode} → ${file.newMode}`);
  else if (file.newMode === "100755" && file.change === "added") words.push("executable");
  else if (file.newMode === "120000") words.push("symbolic link");
  if (file.binary) words.push("binary");
  return words.join(", ");
}
