/**
 * Brings a sandbox's tree to the thread that indexes it, and keeps it up to date: before each search the tree is listed, and what
 * changed since is read. The only way in is the sandbox's own exec.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ExecResult, Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Needed } from "./index-host.ts";
import type { IndexThreads } from "./index-threads.ts";
import { sourceExtensions } from "./languages/registry.ts";
import type { SearchRequest } from "./search-request.ts";
import { maxFileBytes } from "./tree-listing.ts";

const execTimeoutMs = 60_000;
const maxListingBytes = 16 * 1024 * 1024;
/** Contents read at once. */
const batchBytes = 16 * 1024 * 1024;
const batchFiles = 5000;
/** An index that was given up for others, or went with its thread, while a call was under way is brought again. */
const maxTries = 3;

const isSource = sourceExtensions.map((extension) => `-name '*${extension}'`).join(" -o ");
/** Hidden folders, packages that others wrote, what Python leaves. */
const skipped = "\\( -name '.?*' -o -name node_modules -o -name __pycache__ -o -name site-packages \\) -prune";
const find = `find . -xdev ${skipped} -o -type f \\( ${isSource} \\) -size -${maxFileBytes / 1024 + 1}k`;

/** Zero-ended records where find can print them, else lines. */
const listScript = `
cd "$1" || exit 3
if find / -maxdepth 0 -printf '' >/dev/null 2>&1
then ${find} -printf '%s %T@ %C@ %p\\0'
else ${find} -exec stat -c '%s %Y %Z %n' {} +
fi 2>/dev/null
exit 0
`;
const hashScript = `cd "$1" || exit 3; ${find} -print0 2>/dev/null | xargs -0 -r sha1sum 2>/dev/null; exit 0`;
const headScript = `cd "$1" 2>/dev/null && git rev-parse HEAD 2>/dev/null; exit 0`;
const readScript = `
cd "$1" || exit 3
if tar --version 2>/dev/null | grep -q GNU
then tar --null --no-recursion -cf - -T - 2>/dev/null
else tr '\\0' '\\n' | tar -cf - -T - 2>/dev/null
fi
exit 0
`;

export interface TreePlace {
  readonly sandbox: Sandbox;
  /** Absolute path. */
  readonly root: string;
}

export class SandboxTree {
  readonly #threads: IndexThreads;
  readonly #place: TreePlace;
  readonly #id: string;
  /** What rollouts of the same tree have in common. */
  #affinity: Promise<string> | undefined;
  /** Calls on one tree follow each other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(threads: IndexThreads, place: TreePlace) {
    this.#threads = threads;
    this.#place = place;
    this.#id = `${place.sandbox.id} ${place.root}`;
  }

  /** @throws BoundaryError("sandbox"), BoundaryError("tool") where the tree can't be read, BoundaryError("infrastructure") */
  search(request: SearchRequest, signal: AbortSignal): Promise<string> {
    const answer = this.#last.then(() => this.#answer(request, signal));
    // Whoever asked hears of the failure; the next call starts from a listing of its own.
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #answer(request: SearchRequest, signal: AbortSignal): Promise<string> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#synchronise(signal);
        return await this.#run({ kind: "search", id: this.#id, request }, signal);
      } catch (error) {
        const isLost = error instanceof BoundaryError && error.code === "search_index";
        if (!isLost || tries >= maxTries || signal.aborted) throw error;
      }
    }
  }

  async #synchronise(signal: AbortSignal): Promise<void> {
    const listing = await this.#exec(listScript, signal);
    const needed = await this.#run({ kind: "refresh", id: this.#id, listing }, signal);
    if (needed !== null) return this.#supply(needed, signal);
    // The first time, or the index was given up for others.
    const hashes = await this.#exec(hashScript, signal);
    const { root } = this.#place;
    await this.#supply(await this.#run({ kind: "open", id: this.#id, root, listing, hashes }, signal), signal);
  }

  async #supply(needed: Needed, signal: AbortSignal): Promise<void> {
    for (const batch of batches(needed)) {
      const names = Buffer.from(batch.map((path) => `./${path}\0`).join(""), "utf8");
      const tar = await this.#exec(readScript, signal, names);
      await this.#run({ kind: "supply", id: this.#id, tar }, signal);
    }
    await this.#run({ kind: "settle", id: this.#id }, signal);
  }

  async #run<T extends Parameters<IndexThreads["run"]>[1]>(task: T, signal: AbortSignal) {
    this.#affinity ??= this.#head(signal);
    try {
      return await this.#threads.run(await this.#affinity, task, signal);
    } catch (error) {
      this.#affinity = undefined;
      throw error;
    }
  }

  async #head(signal: AbortSignal): Promise<string> {
    const head = await this.#exec(headScript, signal);
    return `${this.#place.root} ${Buffer.from(head).toString("latin1").trim()}`;
  }

  async #exec(script: string, signal: AbortSignal, stdin?: Uint8Array): Promise<Uint8Array> {
    const { sandbox, root } = this.#place;
    const maxOutputBytes = stdin === undefined ? maxListingBytes : 4 * batchBytes;
    const command = ["sh", "-c", script, "rolldeck", root];
    const result = await sandbox.exec(
      { command, cwd: "/", timeoutMs: execTimeoutMs, maxOutputBytes, ...(stdin && { stdin }) },
      signal,
    );
    checkEnd(result, root);
    // Threads are given memory of their own.
    return Uint8Array.from(result.stdout.head);
  }
}

function checkEnd({ exitCode, timedOut, stderr }: ExecResult, root: string): void {
  if (exitCode === 0) return;
  const words = Buffer.from(stderr.head).toString("utf8").trim().slice(0, 300);
  const why = timedOut
    ? "it took too long"
    : exitCode === 3
      ? "there is no such folder"
      : words || `exit code ${exitCode}`;
  throw new BoundaryError("tool", "no_tree", `${root} can't be searched: ${why}`);
}

function* batches(needed: Needed): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const file of needed) {
    if (batch.length > 0 && (bytes + file.bytes > batchBytes || batch.length >= batchFiles)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file.path);
    bytes += file.bytes;
  }
  if (batch.length > 0) yield batch;
}
