/**
 * Files of a sandbox by the commands in it (`cat`, `tar`, …), for runtimes whose own way to files knows nothing of memory file
 * systems and users. Invariants: bytes are exact; a file is written whole or not at all; what the sandbox answers is taken as
 * hostile (an archive it gives is checked, a size it tells is not believed).
 */
import { posix } from "node:path";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecRequest, ExecResult, SandboxProcess, SpawnRequest } from "@rolldeck/contracts/ports/sandbox";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { checkedArchive, checkGivenArchive } from "./checked-archive.ts";
import { fileTrouble } from "./file-trouble.ts";

const timeoutMs = 120_000;
const archiveTimeoutMs = 600_000;
const maxPath = 4_096;
const maxComplaint = 8_192;
/** Programs then complain in the words that are looked for. */
const environment = { LC_ALL: "C", LANGUAGE: "" };

const readScript = `if [ -d "$1" ]; then exit 91; fi
if [ -e "$1" ] && ! [ -f "$1" ]; then exit 92; fi
exec head -c "$2" -- "$1"`;

/** The count guards against an input that broke off: half a file must not take the place of a whole one. */
const writeScript = `p=$1
if [ -L "$p" ]; then p=$(readlink -f -- "$p" && printf x) || exit 93; p=\${p%?x}; fi
if [ -d "$p" ]; then exit 91; fi
if [ -e "$p" ] && ! [ -f "$p" ]; then exit 92; fi
case $p in */*) d=\${p%/*} ;; *) d=. ;; esac
[ -n "$d" ] || d=/
if ! [ -d "$d" ]; then mkdir -p -- "$d" || exit 1; fi
t=$d/.$3
if [ -n "$2" ]; then m=$2; else m=$(stat -c %a -- "$p" 2>/dev/null) || m=644; fi
cat >"$t"
c=$?
if [ $c -eq 0 ] && [ "$(wc -c <"$t")" -ne "$4" ]; then c=94; fi
if [ $c -eq 0 ]; then chmod "$m" -- "$t" && mv -f -- "$t" "$p"; c=$?; fi
if [ $c -ne 0 ]; then rm -f -- "$t"; fi
exit $c`;

const putScript = `mkdir -p -- "$1" && exec tar -xof - -C "$1"`;

const getScript = `if ! [ -e "$1" ] && ! [ -L "$1" ]; then ls -d -- "$1" >/dev/null; exit 1; fi
plain=
if tar --help 2>&1 | grep -q hard-dereference; then plain=--hard-dereference; fi
{ tar -cf - $plain -C "$2" -- "$3"; echo "tar-ended:$?" >&2; } | head -c "$4"`;

/** The part of a sandbox that is the same wherever commands run. */
export abstract class FilesByExec {
  #count = 0;

  abstract readonly workdir: string;
  abstract exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  abstract spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess>;

  /** @throws SandboxFileError | BoundaryError("sandbox") */
  async readFile(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    const absolute = this.#absolute(path);
    const asked = options.maxBytes + 1;
    const result = await this.#run(
      readScript,
      [absolute, String(asked)],
      { maxOutputBytes: Math.max(asked, maxComplaint) },
      path,
      signal,
    );
    if (result.exitCode !== 0) throw fileTrouble(path, result.exitCode, textOf(result.stderr.head));
    if (result.stdout.bytes > options.maxBytes) throw tooLarge(path, options.maxBytes);
    return result.stdout.head;
  }

  /** @throws SandboxFileError | BoundaryError("sandbox") */
  async writeFile(
    path: string,
    bytes: Uint8Array,
    options: { readonly mode?: number; readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const absolute = this.#absolute(path);
    const mode = options.mode === undefined ? "" : (options.mode & 0o7777).toString(8);
    this.#count += 1;
    const beside = `rolldeck-${this.#count}-${Math.random().toString(36).slice(2, 10)}.part`;
    const words = [absolute, mode, beside, String(bytes.length)];
    const given = { stdin: bytes, ...(options.user === undefined ? {} : { user: options.user }) };
    const result = await this.#run(writeScript, words, { ...given, maxOutputBytes: maxComplaint }, path, signal);
    if (result.exitCode === 94 && !/space|quota|large/i.test(textOf(result.stderr.head))) {
      throw new BoundaryError("sandbox", "unavailable", `writing ${path}: its bytes did not arrive`, {
        retryable: true,
      });
    }
    if (result.exitCode !== 0) throw fileTrouble(path, result.exitCode, textOf(result.stderr.head));
  }

  /** @throws SandboxFileError | BoundaryError("sandbox") */
  async putArchive(
    path: string,
    tar: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly user?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const late = AbortSignal.timeout(archiveTimeoutMs);
    const limit = AbortSignal.any([signal, late]);
    const command = ["/bin/sh", "-c", putScript, "sh", this.#absolute(path)];
    const chunks = checkedArchive(tar, path);
    // The first piece is checked before anything is started.
    const first = await chunks.next();
    const process = await this.spawn({ command, environment, cwd: "/", ...options }, limit);
    try {
      const said = Promise.all([collect(process.stderr, maxComplaint), collect(process.stdout, maxComplaint)]);
      said.catch(() => undefined);
      const sent = send(process, first, chunks).then(
        () => null,
        (error: unknown) => error,
      );
      const [complaint] = await said;
      const trouble = await sent;
      if (trouble instanceof SandboxFileError) throw trouble;
      signal.throwIfAborted();
      if (late.aborted) throw noAnswer(path, archiveTimeoutMs);
      const { exitCode } = await process.wait();
      if (exitCode !== 0) throw fileTrouble(path, exitCode, complaint);
      if (trouble !== null) throw trouble;
    } finally {
      await process.close();
      await chunks.return(undefined).catch(() => undefined);
    }
  }

  /** @throws SandboxFileError | BoundaryError("sandbox") */
  async getArchive(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array> {
    const absolute = this.#absolute(path).replace(/(?<=.)\/+$/, "");
    const top = posix.basename(absolute);
    const words = [absolute, posix.dirname(absolute), top === "" ? "." : top, String(options.maxBytes + 1)];
    const limits = { maxOutputBytes: Math.max(options.maxBytes + 1, maxComplaint), timeoutMs: archiveTimeoutMs };
    const result = await this.#run(getScript, words, limits, path, signal);
    if (result.stdout.bytes > options.maxBytes) throw tooLarge(path, options.maxBytes);
    const complaint = textOf(result.stderr.head) + textOf(result.stderr.tail);
    const ended = Number(/tar-ended:(\d+)\s*$/.exec(complaint)?.[1] ?? result.exitCode ?? 1);
    const changed = ended === 1 && complaint.includes("changed as we read it");
    if (ended !== 0 && !changed) throw fileTrouble(path, ended, complaint);
    await checkGivenArchive(result.stdout.head, top, path);
    return result.stdout.head;
  }

  async #run(
    script: string,
    words: readonly string[],
    given: Pick<ExecRequest, "stdin" | "user"> & { readonly maxOutputBytes: number; readonly timeoutMs?: number },
    path: string,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    const command = ["/bin/sh", "-c", script, "sh", ...words];
    const result = await this.exec(
      { command, environment, cwd: "/", maxReadBytes: Number.MAX_SAFE_INTEGER, timeoutMs, ...given },
      signal,
    );
    if (!result.timedOut) return result;
    throw noAnswer(path, given.timeoutMs ?? timeoutMs);
  }

  /** @throws SandboxFileError("bad_path") */
  #absolute(path: string): string {
    if (path === "" || path.includes("\0") || path.includes("\n") || Buffer.byteLength(path) > maxPath) {
      const shown = JSON.stringify(path.slice(0, 200));
      throw new SandboxFileError("bad_path", path, `${shown} is no path: it is empty, too long or holds control bytes`);
    }
    return path.startsWith("/") ? path : posix.join(this.workdir, path);
  }
}

async function send(
  process: SandboxProcess,
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
): Promise<void> {
  try {
    if (!first.done) await process.write(first.value);
    for await (const chunk of rest) await process.write(chunk);
    await process.endStdin();
  } catch (error) {
    // A refused archive must not look like its end: what came so far stays unfinished.
    await process.close();
    throw error;
  }
}

async function collect(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  let said = "";
  try {
    for await (const chunk of stream) {
      if (said.length < maxBytes) said += Buffer.from(chunk).toString();
    }
  } catch {
    // It was let go of: why is told by who did.
  }
  return said.slice(0, maxBytes);
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

const noAnswer = (path: string, limitMs: number): BoundaryError =>
  new BoundaryError("sandbox", "unavailable", `${path}: no answer in ${limitMs} ms`, { retryable: true });

const tooLarge = (path: string, maxBytes: number): SandboxFileError =>
  new SandboxFileError("too_large", path, `${path} is larger than ${maxBytes} bytes`);
