/**
 * What the editor needs of a sandbox's file system, through the sandbox alone: what a path is, the bytes of a file, a listing. A
 * file that can't be read or written is said as the operating system says it; a sandbox that is gone is not caught.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type ExecResult, type FileFailure, type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { textStart } from "../text-place.ts";
import type { FolderEntry, OsReason } from "./profile.ts";

const execTimeoutMs = 30_000;

export type PathFacts =
  | { readonly kind: "missing"; readonly parent: "folder" | "missing" | "denied" | "file" }
  | { readonly kind: "denied" }
  | { readonly kind: "folder" }
  /** A device, socket or pipe. */
  | { readonly kind: "special" }
  | {
      readonly kind: "file";
      readonly bytes: number;
      readonly writable: boolean;
      /** Where the bytes are: links followed. */
      readonly target: string;
    };

/** Answers in lines: kind, size, flags, then the path that links lead to, which may hold line ends itself. */
const probeScript = `
LC_ALL=C; export LC_ALL
p=$1
if [ -d "$p" ]; then echo folder; exit 0; fi
if [ ! -e "$p" ]; then
  case $(stat "$p" 2>&1) in
    *"Permission denied"*) echo denied; exit 0;;
  esac
  d=\${p%/*}
  if [ -d "$d/" ]; then
    if [ -w "$d/" ]; then echo missing; echo folder; else echo missing; echo denied; fi
  elif [ -e "$d" ]; then echo missing; echo file
  else echo missing; echo missing
  fi
  exit 0
fi
if [ ! -f "$p" ]; then echo special; exit 0; fi
echo file
stat -L -c %s "$p" || exit 1
if [ -w "$p" ]; then echo w; else echo -; fi
readlink -f "$p"
`;

/** @param path absolute */
export async function probePath(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<PathFacts> {
  const answer = await runShell(sandbox, probeScript, [path], signal);
  const text = Buffer.from(answer.stdout.head).toString("utf8");
  const [kind, second, third, ...rest] = text.split("\n");
  switch (kind) {
    case "folder":
    case "denied":
    case "special":
      return { kind };
    case "missing":
      return { kind, parent: second === "folder" || second === "denied" || second === "file" ? second : "missing" };
    case "file": {
      const target = rest.join("\n").replace(/\n$/, "");
      const named = target.startsWith("/") ? target : path;
      return { kind, bytes: Number(second), writable: third === "w", target: named };
    }
    default:
      throw unusable(answer);
  }
}

/** Two levels, links to folders followed; sorted by bytes of the path, as the C locale does. */
export async function listFolder(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<FolderEntry[]> {
  const script = `find -L "$1" -mindepth 1 -maxdepth 2 -type d -print0; printf '\\0'; find -L "$1" -mindepth 1 -maxdepth 2 ! -type d -print0`;
  const { stdout } = await runShell(sandbox, script, [path], signal);
  // Of a listing beyond the cap only the head is shown; what the cap cut in two is left out.
  const whole = Buffer.from(stdout.head).toString("utf8");
  const text = stdout.gapBytes > 0 ? whole.slice(0, whole.lastIndexOf("\0") + 1) : whole;
  // Each name has a zero behind it: an empty one parts folders from files.
  const parts = text.split("\0");
  const border = parts.indexOf("");
  const folders = border === -1 ? parts : parts.slice(0, border);
  const files = border === -1 ? [] : parts.slice(border + 1).filter((name) => name !== "");
  const entries = [
    ...folders.filter((name) => name !== "").map((name) => ({ path: name, folder: true })),
    ...files.map((name) => ({ path: name, folder: false })),
  ];
  return entries.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

/** Null, or what the operating system says against it. */
export async function writeBytes(
  sandbox: Sandbox,
  path: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<OsReason | null> {
  try {
    await sandbox.writeFile(path, bytes, {}, signal);
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}

/** @throws what is no matter of the file */
export async function readBytes(
  sandbox: Sandbox,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | OsReason | "too_large"> {
  try {
    return await sandbox.readFile(path, { maxBytes }, signal);
  } catch (error) {
    if (error instanceof SandboxFileError && error.code === "too_large") return "too_large";
    return reasonOf(error);
  }
}

const reasons: Readonly<Partial<Record<FileFailure, OsReason>>> = {
  not_found: "missing",
  is_directory: "folder",
  not_a_directory: "notFolder",
  denied: "denied",
  no_space: "full",
  bad_path: "invalid",
};

/** @throws the error itself where it is none of a file */
function reasonOf(error: unknown): OsReason {
  const reason = error instanceof SandboxFileError ? reasons[error.code] : undefined;
  if (reason !== undefined) return reason;
  // The sandbox answers, but its programs can't do it (no room for one more process, a disk that fails): no sandbox is lost by that.
  if (error instanceof BoundaryError && error.code === "unavailable" && !error.retryable) return "failed";
  throw error;
}

/** @throws BoundaryError("tool") when the sandbox has no shell to run it, or it took too long */
export async function runShell(
  sandbox: Sandbox,
  script: string,
  args: readonly string[],
  signal: AbortSignal,
  stdin?: Uint8Array,
): Promise<ExecResult> {
  const command = ["sh", "-c", script, "rolldeck", ...args];
  const result = await sandbox.exec({ command, cwd: "/", timeoutMs: execTimeoutMs, ...(stdin && { stdin }) }, signal);
  if (result.timedOut) throw new BoundaryError("tool", "timeout", "the sandbox's file system did not answer in time");
  if (result.exitCode !== 0 && result.stdout.bytes === 0) throw unusable(result);
  return result;
}

function unusable({ exitCode, stderr }: ExecResult): BoundaryError {
  const words = textStart(Buffer.from(stderr.head).toString("utf8").trim(), 500);
  const why = words === "" ? `exit code ${exitCode}` : words;
  return new BoundaryError("tool", "no_shell", `the sandbox can't run what the editor needs: ${why}`);
}
