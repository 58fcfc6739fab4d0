/** Errors as they go over the wire and come back: the same class, code and words on the other side. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { fileFailures, SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { ProtocolError, type WireError } from "./frames.ts";

const cut = (text: string): string => (text.length > 4000 ? `${text.slice(0, 4000)}…` : text);

/** An error of no known kind tells its message and no more; what was asked for may not be tried again unseen. */
export function toWire(error: unknown): WireError {
  if (error instanceof SandboxFileError) {
    return { kind: "file", code: error.code, path: cut(error.path), message: cut(error.message) };
  }
  if (error instanceof BoundaryError) {
    const { code, retryable, retryAfterMs } = error;
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs: Math.max(0, Math.round(retryAfterMs)) };
    return { kind: "sandbox", code: plainCode(code), message: cut(error.message), retryable, ...wait };
  }
  // A limit of the serving side's own: it did not answer.
  if (error instanceof Error && error.name === "TimeoutError") return toWire(unavailable(error.message, error));
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "sandbox", code: "failed", message: cut(message), retryable: false };
}

const plainCode = (code: string): string => (/^[a-z_]{1,40}$/.test(code) ? code : "failed");

export function fromWire(error: WireError): Error {
  if (error.kind === "file") {
    const code = fileFailures.find((known) => known === error.code);
    if (code === undefined) return new ProtocolError(`a file error of unknown kind ${error.code}: ${error.message}`);
    return new SandboxFileError(code, error.path, error.message);
  }
  const { code, message, retryable, retryAfterMs } = error;
  return new BoundaryError("sandbox", code, message, { retryable, retryAfterMs });
}

/** The connection, host or gateway is away: what was under way may or may not have been done. */
export const unavailable = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "unavailable", message, { retryable: true, retryAfterMs: 1000, cause });

export const gone = (id: string, why: string): BoundaryError =>
  new BoundaryError("sandbox", "gone", `sandbox ${id} is gone: ${why}`);

export const refused = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "refused", message, { cause });
