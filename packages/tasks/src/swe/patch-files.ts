/** What a git patch says of files. Only names are read; whether it applies is git's to say. */

export interface PatchFile {
  readonly path: string;
  readonly change: "added" | "deleted" | "modified";
}

/** Files of a patch in its order, by their new names. Quoted names are read as git writes them. */
export function patchFiles(patch: string): PatchFile[] {
  const files: PatchFile[] = [];
  let open: { path: string; change: PatchFile["change"] } | null = null;
  const lines = patch.split("\n");
  for (const line of lines) {
    if (line.startsWith("diff --git ")) {
      if (open) files.push(open);
      const path = newName(line.slice("diff --git ".length));
      open = path === null ? null : { path, change: "modified" };
    } else if (open && line.startsWith("new file mode ")) open.change = "added";
    else if (open && line.startsWith("deleted file mode ")) open.change = "deleted";
  }
  if (open) files.push(open);
  return files;
}

/** `a/x b/x` → `x`; names with blanks are twice the same, quoted ones have C's escapes. */
function newName(names: string): string | null {
  if (names.endsWith('"')) {
    const quoted = / "((?:[^"\\]|\\.)*)"$/u.exec(names)?.[1];
    return quoted === undefined ? null : withoutSide(unquote(quoted));
  }
  const middle = (names.length - 1) / 2;
  if (names.charAt(middle) === " " && names.slice(2, middle) === names.slice(middle + 3)) return names.slice(2, middle);
  const second = names.lastIndexOf(" b/");
  return second === -1 ? null : names.slice(second + 3);
}

const withoutSide = (name: string): string => name.replace(/^[ab]\//u, "");

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

function unquote(text: string): string {
  const bytes: number[] = [];
  const parts = text.matchAll(/\\([0-3][0-7]{2})|\\(.)|([^\\]+)/gsu);
  for (const [, octal, letter, plain] of parts) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (letter !== undefined) bytes.push(escapes[letter] ?? letter.charCodeAt(0));
    else bytes.push(...Buffer.from(plain ?? ""));
  }
  return Buffer.from(bytes).toString("utf8");
}
