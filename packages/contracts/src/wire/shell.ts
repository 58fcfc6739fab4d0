/**
 * A shell in a sandbox, over a socket of its own in the namespace `/shell`: one socket, one shell. Bytes both ways, unread.
 *
 * Both directions wait for the other end: each piece is answered when it was taken, the server has at most `shellWindow` pieces under
 * way, and a client sends its next piece of input after the answer to the one before.
 */
import { z } from "zod";
import { RunId } from "../api/runs.ts";
import { SandboxId } from "../api/sandboxes.ts";

export const shellNamespace = "/shell";
/** Bytes of one piece, either way. */
export const shellPieceBytes = 16 * 1024;
/** Pieces of output that may be under way. */
export const shellWindow = 8;

const size = { columns: z.int().min(2).max(1000), rows: z.int().min(1).max(500) };
export const OpenShell = z.strictObject({ runId: RunId, sandboxId: SandboxId, ...size });
export type OpenShell = z.infer<typeof OpenShell>;
export const ResizeShell = z.strictObject(size);
export type ResizeShell = z.infer<typeof ResizeShell>;

export type OpenShellReply = { readonly ok: true } | { readonly ok: false; readonly error: string };
export interface ShellEnd {
  /** In words: why it is over. */
  readonly reason: string;
  /** Of the shell, where it ended by itself. */
  readonly exitCode: number | null;
}

export interface ServerToShell {
  "shell-output": (bytes: Uint8Array, taken: () => void) => void;
  "shell-ended": (end: ShellEnd) => void;
}
export interface ShellToServer {
  "shell-open": (request: OpenShell, reply: (answer: OpenShellReply) => void) => void;
  "shell-input": (bytes: Uint8Array, taken: () => void) => void;
  "shell-resize": (size: ResizeShell) => void;
}
