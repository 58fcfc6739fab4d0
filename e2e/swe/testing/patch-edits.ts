/** A unified diff as the edits that an agent would make with an editor: for each hunk the text that is there and the text that should be. */

export interface PatchEdit {
  /** Below the repository's root. */
  readonly file: string;
  /** First line of the hunk before the change, from 1. */
  readonly line: number;
  /** What stands behind the hunk's second @@: the function or class it is in. */
  readonly within: string;
  readonly before: string;
  readonly after: string;
}

/** @throws Error for a patch that adds, removes or renames files: these edits change files that are there */
export function patchEdits(patch: string): PatchEdit[] {
  const edits: PatchEdit[] = [];
  let file = "";
  let hunk: { line: number; within: string; before: string[]; after: string[] } | null = null;
  const close = (): void => {
    if (hunk !== null) edits.push({ file, ...hunk, before: hunk.before.join("\n"), after: hunk.after.join("\n") });
    hunk = null;
  };
  for (const line of patch.split("\n")) {
    const header = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$/.exec(line);
    if (line.startsWith("diff --git ")) close();
    if (/^(new file|deleted file|rename|GIT binary)/.test(line))
      throw new Error(`not a change of a text file: ${line}`);
    if (header !== null) {
      close();
      hunk = { line: Number(header[1]), within: header[2] ?? "", before: [], after: [] };
    } else if (hunk === null) {
      if (line.startsWith("+++ b/")) file = line.slice("+++ b/".length);
    } else if (line.startsWith("-")) hunk.before.push(line.slice(1));
    else if (line.startsWith("+")) hunk.after.push(line.slice(1));
    else if (line.startsWith(" ")) {
      hunk.before.push(line.slice(1));
      hunk.after.push(line.slice(1));
    }
  }
  close();
  return edits;
}
