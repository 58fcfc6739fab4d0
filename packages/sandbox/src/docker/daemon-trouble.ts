/** What the Docker daemon's failures mean to a caller: gone, unavailable, no image, refused or full. */
import { BoundaryError } from "@rolldeck/contracts/errors";

const away = new Set([
  "ECONNREFUSED",
  "ENOENT",
  "EACCES",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_STREAM_PREMATURE_CLOSE",
]);
const goneText =
  /no such container|is not running|no such exec|removal of container|is already in progress|container .* is (restarting|dead|stopped)|marked for removal/i;
const fullText =
  /no space left|cannot allocate memory|resource temporarily unavailable|too many open files|quota exceeded/i;
const awayText =
  /socket hang up|client connection is closing|transport is closing|containerd\.sock|context canceled|aborted/i;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return null;
  return typeof error.statusCode === "number" ? error.statusCode : null;
}

function isAway(error: unknown): boolean {
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    if (away.has(error.code)) return true;
  }
  return awayText.test(textOf(error));
}

/** @param what the attempt in words: `opening a sandbox` */
export function daemonTrouble(error: unknown, what: string): BoundaryError {
  if (error instanceof BoundaryError) return error;
  const text = textOf(error).trim();
  const status = statusOf(error);
  const made = (code: string, message: string, retryable: boolean): BoundaryError =>
    new BoundaryError("sandbox", code, message, { cause: error, retryable });
  if (goneText.test(text)) return made("gone", `${what}: the sandbox is not there any more`, false);
  if (isAway(error)) return made("unavailable", `${what}: the Docker daemon does not answer (${text})`, true);
  if (fullText.test(text)) return made("full", `${what}: the machine has no room (${text})`, true);
  if (/no such image/i.test(text)) return made("no_image", `${what}: ${text}`, false);
  if (status !== null && status >= 400 && status < 500)
    return made("refused", `${what}: Docker refuses it (${text})`, false);
  return made("unavailable", `${what}: ${text}`, true);
}

/** An answer of the daemon, or its failure in our words. */
export async function asked<T>(what: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw daemonTrouble(error, what);
  }
}

export const gone = (id: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "gone", `sandbox ${id} is not there any more`, { cause });

export const refused = (message: string): BoundaryError => new BoundaryError("sandbox", "refused", message);
