/**
 * Files of a sandbox through commands in it: paths mean what they mean there, and no link leads to the host. Invariants: a file is
 * written whole beside its place and renamed; one that is too large is refused, never cut; archives are checked both ways.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type ExecResult, type FileFailure, type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { checkedArchive, checkGivenArchive } from "../shared/checked-archive.ts";

/** Exit codes of our scripts. */
const failures: Readonly<Record<number, FileFailure>> = {
  81: "not_found",
  82: "is_directory",
  83: "too_large",
  84: "bad_path",
  85: "not_a_directory",
  86: "denied",
};
const words: Readonly<Record<FileFailure, string>> = {
  not_found: "is not there",
  is_directory: "is a folder",
  not_a_directory: "lies under something that is no folder",
  denied: "may not be read or written by the sandbox's user",
  too_large: "is larger than was asked for",
  no_space: "has no room: the sandbox's disk is full",
  bad_path: "is no plain file",
  bad_archive: "can't be packed",
};

const fileTimeoutMs = 120_000;

export async function readFile(
  sandbox: Sandbox,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  checkPath(path);
  const script =
    '[ -d "$1" ] && exit 82; [ -e "$1" ] || { head -c 0 -- "$1"; [ -L "$1" ] || exit 81; exit 81; }; [ -f "$1" ] || exit 84; ' +
    '[ -r "$1" ] || exit 86; exec head -c "$2" -- "$1"';
  const result = await run(
    sandbox,
    path,
    [script, path, String(maxBytes + 1)],
    { maxBytes: 2 * maxBytes + 4096 },
    signal,
  );
  if (result.stdout.bytes > maxBytes) throw failed("too_large", path);
  return result.stdout.head;
}

export async function writeFile(
  sandbox: Sandbox,
  path: string,
  bytes: Uint8Array,
  options: { readonly mode?: number; readonly user?: string },
  signal: AbortSignal,
): Promise<void> {
  checkPath(path);
  const script =
    'umask 022; [ -d "$1" ] && exit 82; folder=$(dirname -- "$1"); mkdir -p -- "$folder" || exit 1; ' +
    'path=$1; [ -L "$path" ] && path=$(readlink -f -- "$path"); new=$(mktemp -- "$(dirname -- "$path")/.rolldeck.XXXXXX") || exit 1; ' +
    'mode=$2; [ -n "$mode" ] || mode=$(stat -c %a -- "$path" 2> /dev/null) || mode=644; ' +
    'cat > "$new" && chmod "$mode" -- "$new" && mv -fT -- "$new" "$path" || { rm -f -- "$new"; exit 1; }';
  const mode = options.mode === undefined ? "" : options.mode.toString(8);
  const user = options.user === undefined ? {} : { user: options.user };
  await run(sandbox, path, [script, path, mode], { stdin: bytes, ...user }, signal);
}

export async function putArchive(
  sandbox: Sandbox,
  path: string,
  tar: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  checkPath(path);
  const script =
    'umask 022; mkdir -p -- "$1" && cd -- "$1" && exec tar -x -f - --no-same-owner --no-overwrite-dir --keep-directory-symlink';
  const child = await sandbox.spawn({ command: ["/bin/sh", "-c", script, "sh", path] }, signal);
  try {
    const said = collectWords(child.stderr);
    const drained = collectWords(child.stdout);
    for await (const chunk of checkedArchive(tar, path)) {
      signal.throwIfAborted();
      // A tar that gave up says why at its end.
      if (!(await child.write(chunk).then(yes, no))) break;
    }
    await child.endStdin();
    const { exitCode } = await child.wait();
    await drained;
    if (exitCode !== 0) throw failed(failureOf(exitCode, await said), path, await said);
  } finally {
    await child.close();
  }
}
const yes = () => true;
const no = () => false;

export async function getArchive(
  sandbox: Sandbox,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  checkPath(path);
  const script =
    '[ -e "$1" ] || [ -L "$1" ] || exit 81; path=$(cd -- "$(dirname -- "$1")" && pwd -P) || exit 86; ' +
    'exec tar -c -f - --hard-dereference -C "$path" -- "$(basename -- "$1")"';
  const result = await run(
    sandbox,
    path,
    [script, path],
    { maxBytes: 2 * maxBytes + 4096, maxRead: 2 * maxBytes },
    signal,
  );
  if (result.flooded || result.stdout.bytes > maxBytes) throw failed("too_large", path);
  const top = path.replace(/\/+$/, "").split("/").pop() ?? "";
  await checkGivenArchive(result.stdout.head, top, path);
  return result.stdout.head;
}

interface RunOptions {
  readonly stdin?: Uint8Array;
  readonly maxBytes?: number;
  readonly maxRead?: number;
  readonly user?: string;
}

/** @throws SandboxFileError for what the script or its programs said */
async function run(
  sandbox: Sandbox,
  path: string,
  [script = "", ...values]: readonly string[],
  { stdin, maxBytes, maxRead, user }: RunOptions,
  signal: AbortSignal,
): Promise<ExecResult> {
  const result = await sandbox.exec(
    {
      command: ["/bin/sh", "-c", script, "sh", ...values],
      environment: { LC_ALL: "C" },
      timeoutMs: fileTimeoutMs,
      maxOutputBytes: maxBytes ?? 65_536,
      ...(maxRead !== undefined && { maxReadBytes: Math.max(65_536, maxRead) }),
      ...(stdin !== undefined && { stdin }),
      ...(user !== undefined && { user }),
    },
    signal,
  );
  if (result.exitCode === 0 || result.flooded) return result;
  const said = Buffer.from(result.stderr.head).toString("utf8").trim();
  if (result.timedOut)
    throw new BoundaryError("sandbox", "unavailable", `${path} could not be read or written in time`, {
      retryable: true,
    });
  throw failed(failureOf(result.exitCode, said), path, said);
}

function failureOf(exitCode: number | null, said: string): FileFailure {
  const known = failures[exitCode ?? 0];
  if (/No space left|Disk quota|Cannot allocate memory/i.test(said)) return "no_space";
  if (/Not a directory|File exists/i.test(said)) return "not_a_directory";
  if (/Permission denied|Read-only file system|Operation not permitted/i.test(said)) return "denied";
  return known ?? (/No such file/i.test(said) ? "not_found" : "bad_path");
}

const failed = (code: FileFailure, path: string, said = ""): SandboxFileError =>
  new SandboxFileError(code, path, `${path} ${words[code]}${said === "" ? "" : ` (${said.slice(0, 300)})`}`);

function checkPath(path: string): void {
  if (!path.startsWith("/") || path.includes("\0") || Buffer.byteLength(path) > 4096)
    throw failed("bad_path", path.slice(0, 200));
}

async function collectWords(stream: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text = `${text}${Buffer.from(chunk).toString("utf8")}`.slice(0, 4000);
  return text;
}
