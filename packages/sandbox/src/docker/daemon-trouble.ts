/**
 * What the Docker daemon's failures mean to a caller: gone, unavailable, no image, refused or full. Invariant: whoever asks the
 * daemon through here hears within a limit, also of a daemon that takes connections and answers none.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { inTime } from "../shared/waiting.ts";

/** For all that a daemon does at once, however busy its machine is. */
export const answerMs = 30_000;
/** For making, starting, stopping and removing a container: many at a time on a slow disk take their turns. */
export const containerMs = 60_000;

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
/** Somebody holds it (`docker pause`, an image that is being made of it): it goes on later. */
const pausedText = /container .* is paused|container (?:stopped\/)?paused/i;
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
  if (pausedText.test(text)) return made("unavailable", `${what}: the sandbox is paused`, true);
  if (isAway(error)) return made("unavailable", `${what}: the Docker daemon does not answer (${text})`, true);
  if (fullText.test(text)) return made("full", `${what}: the machine has no room (${text})`, true);
  if (/no such image/i.test(text)) return made("no_image", `${what}: ${text}`, false);
  if (status !== null && status >= 400 && status < 500)
    return made("refused", `${what}: Docker refuses it (${text})`, false);
  return made("unavailable", `${what}: ${text}`, true);
}

interface Patience<T> {
  /** Default `answerMs`. */
  readonly limitMs?: number;
  /** Gets what comes after it was given up on: it may hold a connection. */
  readonly late?: (answer: T) => void;
}

/** An answer of the daemon, or its failure in our words. @throws BoundaryError("sandbox") */
export async function asked<T>(what: string, answer: Promise<T>, patience: Patience<T> = {}): Promise<T> {
  try {
    return await heard(what, answer, patience);
  } catch (error) {
    throw daemonTrouble(error, what);
  }
}

/** As `asked`, with the daemon's failure as it came: for those who tell statuses apart. Silence is `unavailable` here, too. */
export async function heard<T>(
  what: string,
  answer: Promise<T>,
  { limitMs = answerMs, late }: Patience<T> = {},
): Promise<T> {
  let givenUp = false;
  if (late !== undefined) answer.then((value) => (givenUp ? late(value) : undefined)).catch(() => undefined);
  return inTime(answer, limitMs, () => {
    givenUp = true;
    const message = `${what}: the sandbox runtime does not answer (Docker was silent for ${limitMs / 1000} s)`;
    return new BoundaryError("sandbox", "unavailable", message, { retryable: true });
  });
}

export const refused = (message: string): BoundaryError => new BoundaryError("sandbox", "refused", message);
