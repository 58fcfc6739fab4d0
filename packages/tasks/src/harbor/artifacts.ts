/**
 * Files that a task takes out of the agent's sandbox: for people, and for a verifier of its own. Invariants: exact bytes, whole or
 * not at all; one that is too large is told as that, and a verifier that needs it does not grade without it.
 */
import { posix } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { headWithin } from "@rolldeck/agent/core/cut-text";
import { maxEvidenceBytes } from "@rolldeck/contracts/api/artifacts";
import { BoundaryError } from "@rolldeck/contracts/errors";
import { type Sandbox, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import type { GradingSandboxes, NewEvidence } from "@rolldeck/contracts/ports/task";
import { z } from "zod";
import { archiveByList } from "./archive-by-list.ts";
import { isOfProgram } from "./broken-sandbox.ts";
import { readTar, type TarEntry, TarRefusal, writeTar } from "./checked-tar.ts";
import type { Artifact } from "./task-file.ts";

/** Beside other rollouts' work: large ones take seconds. */
const packed = promisify(gzip);

/** Of one artifact, unpacked. */
const maxArtifactBytes = 64 * 1024 * 1024;
/** Of all of a step, packed: they are rows of the database. */
const maxKeptBytes = 64 * 1024 * 1024;
const maxEntries = 20_000;

const Manifest = z.object({
  version: z.literal(1),
  /** Commands of verifier.collect that did not end well; what they were to make is then missing. */
  failedHooks: z.array(z.string()),
  artifacts: z.array(
    z.object({
      source: z.string(),
      /** `unreadable`: the sandbox answers, and can't give it. */
      state: z.enum(["taken", "missing", "too large", "unreadable"]),
      /** Bytes of the gzipped tar, and the names of its parts in order. */
      bytes: z.int(),
      parts: z.array(z.string()),
      /** What can't be carried over: devices, pipes, links that lead out. At most 100 names. */
      leftOut: z.array(z.string()),
      /** Of one that is unreadable. */
      why: z.string().optional(),
    }),
  ),
});
type Manifest = z.infer<typeof Manifest>;

/** Where a task's verifier and people look without being told. */
const published: Artifact = { source: "/logs/artifacts", exclude: [] };

export const manifestName = (prefix: string): string => `${prefix}artifacts.json`;

/**
 * @param prefix of the names that the evidence gets
 * @throws BoundaryError("sandbox")
 */
export async function takeArtifacts(
  wanted: { readonly prefix: string; readonly artifacts: readonly Artifact[]; readonly failedHooks: readonly string[] },
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<NewEvidence[]> {
  const { prefix, failedHooks } = wanted;
  const evidence: NewEvidence[] = [];
  const artifacts: Manifest["artifacts"] = [];
  let left = maxKeptBytes;
  for (const artifact of [published, ...wanted.artifacts.filter(({ source }) => source !== published.source)]) {
    const source = posix.resolve(sandbox.workdir, artifact.source);
    const taken = await take(artifact, source, sandbox, signal);
    if ("state" in taken || taken.packed.length > left) {
      const told: NotTaken = "state" in taken ? taken : { state: "too large" };
      artifacts.push({ source, ...told, bytes: 0, parts: [], leftOut: [] });
      continue;
    }
    left -= taken.packed.length;
    const parts = inParts(taken.packed, `${prefix}artifact-${artifacts.length + 1}`);
    evidence.push(...parts);
    const names = parts.map(({ name }) => name);
    artifacts.push({ source, state: "taken", bytes: taken.packed.length, parts: names, leftOut: taken.leftOut });
  }
  const manifest: Manifest = { version: 1, failedHooks: [...failedHooks], artifacts };
  const content = Buffer.from(JSON.stringify(manifest));
  return [...evidence, { name: manifestName(prefix), mediaType: "application/json", content }];
}

function inParts(bytes: Uint8Array, name: string): NewEvidence[] {
  const count = Math.max(1, Math.ceil(bytes.length / maxEvidenceBytes));
  return Array.from({ length: count }, (_, at) => ({
    name: count === 1 ? `${name}.tar.gz` : `${name}.tar.gz.${at + 1}`,
    mediaType: "application/gzip",
    content: bytes.subarray(at * maxEvidenceBytes, (at + 1) * maxEvidenceBytes),
  }));
}

interface Taken {
  readonly packed: Uint8Array;
  readonly leftOut: string[];
}
type NotTaken = { readonly state: "missing" | "too large" } | { readonly state: "unreadable"; readonly why: string };

async function take(
  artifact: Artifact,
  source: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Taken | NotTaken> {
  const leftOut: string[] = [];
  const onOdd = (name: string, why: string): void => {
    if (leftOut.length < 100) leftOut.push(`${headWithin(name, 200)}: ${why}`);
  };
  try {
    const archive = await archiveOf(source, sandbox, onOdd, signal);
    if (archive === null) return { state: "too large" };
    const entries = await readTar(archive, { maxBytes: maxArtifactBytes, maxEntries }, onOdd);
    const isExcluded = exclusion(artifact.exclude);
    const kept = entries.filter(
      (entry) => !isExcluded(entry.name) && staysInside(entry, posix.basename(source), onOdd),
    );
    // Equal files give equal bytes: no time stands in the header.
    return { packed: await packed(await writeTar(kept)), leftOut };
  } catch (cause) {
    if (cause instanceof TarRefusal) return { state: "too large" };
    if (cause instanceof SandboxFileError && cause.code === "too_large") return { state: "too large" };
    if (cause instanceof SandboxFileError || isOfProgram(cause)) return ofAnswering(sandbox, cause, signal);
    throw cause;
  }
}

/**
 * A sandbox that answers and can't give it is what the agent left: nothing that another attempt would mend.
 * @throws BoundaryError("sandbox") when it does not answer
 */
async function ofAnswering(sandbox: Sandbox, cause: Error, signal: AbortSignal): Promise<NotTaken> {
  const { exitCode } = await sandbox.exec({ command: ["/bin/sh", "-c", ":"], cwd: "/", timeoutMs: 60_000 }, signal);
  const isMissing = cause instanceof SandboxFileError && /^not_(?:found|a_directory)$/u.test(cause.code);
  // Without a shell everything seems to be missing.
  if (exitCode === 0 && isMissing) return { state: "missing" };
  return { state: "unreadable", why: headWithin(cause.message, 500) };
}

/** Null = too large. @throws SandboxFileError, BoundaryError("sandbox") */
async function archiveOf(
  source: string,
  sandbox: Sandbox,
  onOdd: (name: string, why: string) => void,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  try {
    return await sandbox.getArchive(source, { maxBytes: maxArtifactBytes }, signal);
  } catch (cause) {
    if (!(cause instanceof SandboxFileError) || cause.code !== "bad_archive") throw cause;
    return archiveByList(source, sandbox, maxArtifactBytes, onOdd, signal);
  }
}

/**
 * Beside the artifact the verifier keeps its own files: a link must not lead there, neither at once nor through another link. So `..`
 * stands only at its beginning, where it counts folders.
 */
function staysInside(
  { name, kind, target }: TarEntry,
  top: string,
  onOdd: (name: string, why: string) => void,
): boolean {
  if (kind !== "link") return true;
  const reached = posix.join(posix.dirname(name), target);
  const isInside = reached === top || reached.startsWith(`${top}/`);
  const turnsBack = /(?:^|\/)\.\.(?:\/|$)/u.test(target.replace(/^(?:\.{0,2}(?:\/|$))*/u, ""));
  if (isInside && !turnsBack) return true;
  onOdd(name, "it is a link that leads out of the folder");
  return false;
}

/** As tar's --exclude: a pattern fits a name from any folder on, and takes what is below with it. */
function exclusion(patterns: readonly string[]): (name: string) => boolean {
  const shapes = patterns.map((pattern) => {
    const pieces = pattern.replace(/\/+$/u, "").split(/([*?])/u);
    return new RegExp(`(?:^|/)${pieces.map(asExpression).join("")}(?:/|$)`, "u");
  });
  return (name) => shapes.some((shape) => shape.test(name));
}
const asExpression = (piece: string): string =>
  piece === "*" ? ".*" : piece === "?" ? "." : piece.replaceAll(/[\\^$.*+?()[\]{}|]/gu, (each) => `\\${each}`);

/**
 * Puts what was taken where it was, in another sandbox.
 * @throws BoundaryError("verifier", "not_collected") when something is not there in whole, BoundaryError("verifier", "unreadable") for
 *   what the agent's sandbox could not give
 */
export async function restoreArtifacts(
  prefix: string,
  collected: GradingSandboxes["collected"],
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  const manifest = await readManifest(prefix, collected);
  if (manifest === null) throw notCollected("nothing was collected from the agent's sandbox");
  for (const { source, state, parts, why } of manifest.artifacts) {
    if (state === "missing") continue;
    if (state === "unreadable")
      throw new BoundaryError("verifier", "unreadable", `${source} could not be read: ${why ?? "no reason was told"}`);
    if (state === "too large") throw notCollected(`${source} was too large to be carried over`);
    const pieces: Uint8Array[] = [];
    for (const part of parts) {
      const piece = await collected(part);
      if (piece === null) throw notCollected(`${part} of ${source} is not there`);
      pieces.push(piece);
    }
    const tar = await writeTar(await unpacked(Buffer.concat(pieces)));
    await sandbox.putArchive(posix.dirname(source), tar, {}, signal);
  }
}

async function unpacked(bytes: Uint8Array): Promise<TarEntry[]> {
  return readTar(bytes, { maxBytes: maxArtifactBytes, maxEntries }, (name, why) => {
    throw notCollected(`${name}: ${why}`);
  });
}

/** Null when nothing was collected. */
export async function readManifest(prefix: string, collected: GradingSandboxes["collected"]): Promise<Manifest | null> {
  const bytes = await collected(manifestName(prefix));
  return bytes === null ? null : Manifest.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
}

const notCollected = (message: string): BoundaryError => new BoundaryError("verifier", "not_collected", message);
