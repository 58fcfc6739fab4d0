/**
 * What files were before their edits. It lies in the sandbox, outside the repository, so that a rollout another worker goes on with
 * can still undo; bounded by file, in number and in bytes. Losing it loses `undo_edit`, never an edit.
 */
import { createHash } from "node:crypto";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { readBytes, runShell } from "./sandbox-files.ts";

/** Kept of all files together; the oldest go first. */
const maxKilobytes = 65_536;

const folderScript = `
for base in "\${TMPDIR:-/var/tmp}" /var/tmp /tmp; do
  d=$base/.rolldeck-editor
  if mkdir -p "$d" 2>/dev/null && [ -w "$d" ]; then break; fi
  d=
done
[ -n "$d" ] || { echo none; exit 0; }
cd "$d" || exit 0
newest() { ls | grep "^$1[.]" | sort | tail -n 1; }
`;

/** Numbers have six digits: names sort as they were made. */
const pushScript = `${folderScript}
last=$(newest "$1"); n=\${last##*.}; n=$(printf %06d $((1\${n:-000000} % 1000000 + 1)))
if cat > ".new.$$" && mv ".new.$$" "$1.$n"; then echo "$1.$n"; else rm -f ".new.$$"; echo none; fi
ls | grep "^$1[.]" | sort -r | tail -n +$(($2 + 1)) | while read -r old; do rm -f "$old"; done
i=0
while [ $i -lt 1000 ] && [ "$(du -sk . | cut -f1)" -gt "$3" ]; do
  old=$(ls -tr | head -n 1); [ -n "$old" ] || break
  rm -f "$old"; i=$((i + 1))
done
`;
const newestScript = `${folderScript}
echo "$d/$(newest "$1")"
`;

/** One name a file, without its letters. @param path where its bytes are */
const keyOf = (path: string): string => createHash("sha256").update(path).digest("hex").slice(0, 32);

/** Bytes as they were, as the newest of at most `depth`. */
export async function pushHistory(
  sandbox: Sandbox,
  path: string,
  bytes: Uint8Array,
  depth: number,
  signal: AbortSignal,
): Promise<void> {
  await runShell(sandbox, pushScript, [keyOf(path), String(depth), String(maxKilobytes)], signal, bytes);
}

/** The newest, or null when there is none (left). `drop` takes it away. */
export async function newestHistory(
  sandbox: Sandbox,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ readonly bytes: Uint8Array; drop(): Promise<void> } | null> {
  const { stdout } = await runShell(sandbox, newestScript, [keyOf(path)], signal);
  const file = Buffer.from(stdout.head).toString("utf8").trim();
  if (!file.startsWith("/") || file.endsWith("/")) return null;
  const bytes = await readBytes(sandbox, file, maxBytes, signal);
  if (!(bytes instanceof Uint8Array)) return null;
  const drop = async (): Promise<void> => {
    await runShell(sandbox, 'rm -f "$1"; echo', [file], signal);
  };
  return { bytes, drop };
}
