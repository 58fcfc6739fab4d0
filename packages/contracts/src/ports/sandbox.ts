/**
 * A sandbox: an isolated place where tools act. Runtimes open them, whoever opened one closes it, and one that nobody renews
 * ends by itself.
 *
 * Errors tell three things apart. A command that fails is no error: its `ExecResult` says how it ended. A file that can't be read
 * or written is a SandboxFileError. Anything else is a BoundaryError("sandbox", code): `gone` (the sandbox is not there any more,
 * whatever was in it is lost), `unavailable` (the runtime does not answer; retryable), `no_image` (the image can't be had;
 * retryable where its registry is only busy), `refused` (this runtime can't honour the spec; never a weaker sandbox instead),
 * `full` (no room; retryable).
 */

import { BoundaryError } from "../errors.ts";

/**
 * Failures of the task or of the server's set-up, not of the moment: the same sandbox asked for again ends the same way, whichever
 * worker asks. Their message names what is missing (the image, the runtime) and what to do about it.
 */
const lastingFailures: readonly string[] = ["no_image", "refused"];

/**
 * Whether asking for the same sandbox again is useless: nothing was lost, it can't be had. A rollout that meets this is not tried
 * again, and its reason is the error's message. An image that can't be pulled just now (`no_image`, retryable) is none of these.
 */
export const isLastingSandboxFailure = (error: unknown): error is BoundaryError =>
  error instanceof BoundaryError &&
  error.boundary === "sandbox" &&
  lastingFailures.includes(error.code) &&
  !error.retryable;

/** Where the file system comes from. */
export type ImageSource =
  | { readonly kind: "name"; readonly name: string }
  /** Built from a folder on the operator's disk; equal folders are built once. */
  | {
      readonly kind: "build";
      /** Absolute path of the build context. */
      readonly context: string;
      /** Path in the context. */
      readonly dockerfile: string;
      readonly timeoutMs: number;
    };

export type NetworkPolicy =
  | { readonly mode: "none" }
  /** HTTP and HTTPS to these hosts (`example.org`, `*.example.org`, `example.org:8443`) through a proxy, nothing else. */
  | { readonly mode: "allow-list"; readonly hosts: readonly string[] }
  | { readonly mode: "public" };

/** Null = the runtime's default, which is always a limit. */
export interface SandboxResources {
  /** Cores, fractions allowed. */
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly pids: number | null;
  /** Where the runtime can bound it; a runtime that can't says so in `limits`. */
  readonly diskMb: number | null;
}

/** From the operator's disk; tasks and configs can't name any. */
export interface SandboxMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface Healthcheck {
  readonly command: readonly string[];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly startMs: number;
  readonly retries: number;
}

/** A container beside the agent's, reached by its name on a network of their own. */
export interface SandboxService {
  readonly name: string;
  readonly image: ImageSource;
  /** Null = the image's own. */
  readonly command: readonly string[] | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly resources: SandboxResources;
  readonly healthcheck: Healthcheck | null;
}

/** What a task asks for. */
export interface TaskSandbox {
  /** Null: no image, the runtime's own file system (`sandbox: process`). */
  readonly image: ImageSource | null;
  readonly resources: SandboxResources;
  readonly network: NetworkPolicy;
  /** Absent = the image's own. Root of a sandbox has no capability: it is a user like others who owns the image's files. */
  readonly user?: string;
  /** Commands begin here; null = the image's own. */
  readonly workdir: string | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly services: readonly SandboxService[];
}

export interface SandboxSpec extends TaskSandbox {
  /** Names the sandbox everywhere: row, label, container. `sbx_` and 20 letters or digits. */
  readonly id: string;
  /** Shown and searched by: run, rollout, attempt, purpose. Values are at most 60 plain characters. */
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts: readonly SandboxMount[];
  /** It ends by itself this long after it was opened or last renewed. */
  readonly leaseMs: number;
  /** It ends by itself after this at the latest, however often it is renewed. */
  readonly maxLifeMs: number;
}

export interface ExecRequest {
  /** The program and its arguments; no shell is added. */
  readonly command: readonly string[];
  /** Absent = closed at once. */
  readonly stdin?: Uint8Array;
  /** Absent = the sandbox's workdir. */
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Absent = the sandbox's own. */
  readonly user?: string;
  /** Then every process of the sandbox that the same user started is ended, and `timedOut` is set. */
  readonly timeoutMs: number;
  /** Kept of each stream: its head and tail. Default 1 MiB. More is read and dropped. */
  readonly maxOutputBytes?: number;
  /** Output, both streams, past which the command is ended with `flooded`. Default 1 GiB. */
  readonly maxReadBytes?: number;
}

/** A stream of which the middle may be left out. Exact bytes; nothing is decoded. */
export interface CappedOutput {
  readonly head: Uint8Array;
  /** Bytes between head and tail that were dropped; 0 = `head` is all of it and `tail` is empty. */
  readonly gapBytes: number;
  readonly tail: Uint8Array;
  /** Of the whole stream. */
  readonly bytes: number;
}

export interface ExecResult {
  /** Null when it did not end by itself. A process ended by signal n has 128 + n. */
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  readonly flooded: boolean;
  /** The kernel ended one of its processes for memory. */
  readonly outOfMemory: boolean;
  readonly stdout: CappedOutput;
  readonly stderr: CappedOutput;
  readonly durationMs: number;
}

export interface SpawnRequest extends Omit<ExecRequest, "timeoutMs" | "stdin" | "maxOutputBytes" | "maxReadBytes"> {
  /** A terminal of this size; stderr then comes with stdout. */
  readonly tty?: { readonly columns: number; readonly rows: number };
}

/** A command that is talked to while it runs. The caller reads both streams to their end or closes it. */
export interface SandboxProcess {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  write(bytes: Uint8Array): Promise<void>;
  endStdin(): Promise<void>;
  /** Present with a terminal. */
  resize?(columns: number, rows: number): Promise<void>;
  /** Resolves when the command ended. @throws BoundaryError("sandbox") when the sandbox went away first */
  wait(): Promise<{ readonly exitCode: number | null }>;
  /** Lets go of the streams; does not promise that the command ends. Idempotent, never throws. */
  close(): Promise<void>;
}

export interface Sandbox {
  readonly id: string;
  /** Name of the runtime it lives in. */
  readonly runtime: string;
  readonly workdir: string;
  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult>;
  spawn(request: SpawnRequest, signal: AbortSignal): Promise<SandboxProcess>;
  /** Ends every process of that user (absent: the sandbox's own) but the one that keeps the sandbox up. */
  killAll(signal: AbortSignal, user?: string): Promise<void>;
  /** @throws SandboxFileError: never a cut file */
  readFile(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array>;
  /**
   * Whole or not at all (written beside and renamed); folders on the way are made. Absent mode = the old file's, else 0644.
   * @throws SandboxFileError
   */
  writeFile(
    path: string,
    bytes: Uint8Array,
    options: { readonly mode?: number; readonly user?: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** Unpacks a tar under a folder of the sandbox, which is made. @throws SandboxFileError for one that leads out of it */
  putArchive(
    path: string,
    tar: Uint8Array | AsyncIterable<Uint8Array>,
    options: { readonly user?: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** A tar of a file or folder; names begin with its last part. @throws SandboxFileError */
  getArchive(path: string, options: { readonly maxBytes: number }, signal: AbortSignal): Promise<Uint8Array>;
  /** An image name of what it is now. Present where the runtime can. */
  snapshot?(signal: AbortSignal): Promise<string>;
  /**
   * Makes it as it was when it was opened, with a new lease and life: no file, process or setting of before is left. Whoever else
   * holds it finds it `gone`. One that could not be reset is not there any more, or as it was; close it. Present where the runtime can.
   */
  reset?(signal: AbortSignal): Promise<void>;
}

export interface SandboxFact {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: "running" | "ended";
  /** Milliseconds of this machine's wall clock. */
  readonly createdAtMs: number;
}

export interface ExpectedSandboxes {
  readonly count: number;
  /** As their specs will say. */
  readonly maxLifeMs: number;
  /** After so long it counts no more. */
  readonly forMs: number;
}

export interface SandboxRuntime {
  readonly name: string;
  /** How strong it is, for people: `container`, `namespaces (weaker than containers)`, … */
  readonly isolation: string;
  /** What it can't bound or do, for people. */
  readonly limits: readonly string[];
  /** Null when it can be used now, else why not and what to do. */
  ailment(signal: AbortSignal): Promise<string | null>;
  /** Makes an image ready before it is needed; progress in words. Absent: nothing to prepare. */
  prepare?(image: ImageSource, onProgress: (message: string) => void, signal: AbortSignal): Promise<void>;
  /**
   * Tells that so many like this will be opened: some may be opened ahead. Takes the place of what was told of the same before. Absent:
   * nothing is opened ahead.
   */
  expect?(sandbox: TaskSandbox, expected: ExpectedSandboxes, signal: AbortSignal): Promise<void>;
  /** Nothing is left behind when it fails. @throws BoundaryError("sandbox") */
  open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>;
  /** One that this or another process opened. @throws BoundaryError("sandbox", "gone") */
  attach(id: string, signal: AbortSignal): Promise<Sandbox>;
  /** Those that are not there are left out of the answer. */
  renew(ids: readonly string[], leaseMs: number, signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** With its services, networks and volumes. One that is not there is closed. */
  close(id: string, signal: AbortSignal): Promise<void>;
  /** All of this deployment's. @throws BoundaryError("sandbox", "unavailable") rather than answer with part of them */
  list(signal: AbortSignal): Promise<readonly SandboxFact[]>;
  /** Lets go of connections; sandboxes stay. */
  disconnect(): Promise<void>;
}

export const fileFailures = [
  "not_found",
  "is_directory",
  "not_a_directory",
  "denied",
  "too_large",
  "no_space",
  "bad_path",
  "bad_archive",
] as const;
export type FileFailure = (typeof fileFailures)[number];

/** A file of a sandbox that can't be read or written: what a caller may tell the model or treat as an empty answer. */
export class SandboxFileError extends Error {
  override readonly name = "SandboxFileError";
  constructor(
    readonly code: FileFailure,
    readonly path: string,
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(message, options);
  }
}

export const noResources: SandboxResources = { cpus: null, memoryMb: null, pids: null, diskMb: null };

export const sandboxIdPattern = /^sbx_[a-z0-9]{20}$/;

/** @param random at least 20 bytes */
export const sandboxId = (random: Uint8Array): string =>
  `sbx_${[...random.subarray(0, 20)].map((byte) => (byte % 36).toString(36)).join("")}`;
