/**
 * A folder of a sandbox as a tar, where its plain archive is refused: a link in it leads out, or two names are one file. Its entries
 * are listed, those that can't be carried are left out and told, the others are packed by the sandbox's own tar.
 */
import { posix } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { CappedOutput, ExecResult, Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { lastWords, systemPath } from "./in-sandbox.ts";

const maxListBytes = 16 * 1024 * 1024;
const timeoutMs = 120_000;

/** `f`, `d` or `l`, the name, and what a link says, each ended by NUL. */
const listScript = `cd "$1" || exit 1
find "$2" \\( -type f -o -type d -o -type l \\) -exec sh -c '
for file do
  if [ -L "$file" ]; then printf "l\\000%s\\000%s\\000" "$file" "$(readlink "$file")"
  elif [ -d "$file" ]; then printf "d\\000%s\\000\\000" "$file"
  else printf "f\\000%s\\000\\000" "$file"; fi
done' sh {} +`;

/**
 * @param source absolute
 * @param onOdd is told what is left out
 * @returns null when it is larger than that
 * @throws BoundaryError("sandbox")
 */
export async function archiveByList(
  source: string,
  sandbox: Sandbox,
  maxBytes: number,
  onOdd: (name: string, why: string) => void,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const folder = posix.dirname(source);
  const run = (script: string, more: { stdin?: Uint8Array; maxOutputBytes: number }): Promise<ExecResult> => {
    const command = ["/bin/sh", "-c", `PATH=${systemPath}\n${script}`, "sh", folder, posix.basename(source)];
    return sandbox.exec({ command, cwd: "/", timeoutMs, ...more }, signal);
  };
  const listed = await run(listScript, { maxOutputBytes: 2 * maxListBytes });
  if (listed.exitCode !== 0) throw failed(source, listed);
  const list = whole(listed.stdout);
  if (list === null) return null;
  const names = carried(Buffer.from(list).toString("utf8").split("\0"), posix.basename(source), onOdd);
  const stdin = Buffer.from(names.map((name) => `${name}\n`).join(""));
  const packed = await run('cd "$1" && tar -cf - --no-recursion -T -', { stdin, maxOutputBytes: 2 * maxBytes });
  if (packed.exitCode !== 0) throw failed(source, packed);
  const tar = whole(packed.stdout);
  return tar === null || tar.length > maxBytes ? null : tar;
}

const whole = ({ head, gapBytes, tail }: CappedOutput): Uint8Array | null =>
  gapBytes === 0 ? Buffer.concat([head, tail]) : null;

const failed = (source: string, result: ExecResult): BoundaryError =>
  new BoundaryError("sandbox", "not_collected", `${source} can't be packed: ${lastWords(result)}`);

function carried(fields: readonly string[], top: string, onOdd: (name: string, why: string) => void): string[] {
  const names: string[] = [];
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [kind, name = "", target = ""] = fields.slice(at, at + 3);
    const why = trouble(kind, name, target, top);
    if (why === null) names.push(name);
    else onOdd(name, why);
  }
  return names;
}

function trouble(kind: string | undefined, name: string, target: string, top: string): string | null {
  // A list of names, one a line, in which tar reads backslashes.
  if (/[\n\\�]/u.test(name)) return "its name can't be written down";
  if (kind !== "l") return null;
  const reached = posix.normalize(posix.join(posix.dirname(name), target));
  const isInside = !target.startsWith("/") && (reached === top || reached.startsWith(`${top}/`));
  return isInside ? null : "it is a link that leads out of the folder";
}
