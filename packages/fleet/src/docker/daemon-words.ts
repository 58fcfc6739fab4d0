/**
 * Asking a host's daemon: every question ends within its limit, and what it answers wrongly or not at all becomes a reason for
 * people. Invariant: nothing of a request is repeated in an error, for it may hold a key.
 */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import type { z } from "zod";
import { LaunchFailure } from "../launch-failure.ts";
import { gpuRuntimeRemedy } from "../plan/reasons.ts";

/** For what a daemon knows. */
export const answerMs = 8_000;
/** For starting and ending containers. */
export const containerMs = 90_000;

/** Where the question goes, for the words of a failure. */
export interface AskedHost {
  readonly name: string;
  readonly remedy: string;
}

export function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return null;
  return typeof error.statusCode === "number" ? error.statusCode : null;
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).trim();

/** @param what the attempt in words: `starting worker w1` @throws LaunchFailure, the signal's reason */
export async function asked<T>(
  host: AskedHost,
  what: string,
  answer: Promise<T>,
  signal: AbortSignal,
  limitMs = answerMs,
): Promise<T> {
  const limit = AbortSignal.timeout(limitMs);
  const either = AbortSignal.any([signal, limit]);
  answer.catch(() => undefined);
  try {
    return await Promise.race([
      answer,
      new Promise<never>((_resolve, reject) => {
        if (either.aborted) reject(either.reason);
        either.addEventListener("abort", () => reject(either.reason), { once: true });
      }),
    ]);
  } catch (error) {
    signal.throwIfAborted();
    throw daemonFailure(host, what, limit.aborted ? new Error(`no answer in ${limitMs / 1000} s`) : error);
  }
}

/** An answer as far as it is used. @throws LaunchFailure for one that no Docker daemon gives: that host's trouble, and no other's */
export function understood<T extends z.ZodType>(
  host: AskedHost,
  what: string,
  schema: T,
  answer: unknown,
): z.output<T> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map(({ path }) => path.join(".") || "all of it").slice(0, 5);
  const message = `${what}: ${host.name} answers what a Docker daemon does not (${fields.join(", ").slice(0, 200)})`;
  const remedy = "check that its endpoint is that of a Docker daemon, not of something before it";
  throw new LaunchFailure({ code: "unavailable", message, remedy }, { cause: parsed.error, retryable: true });
}

/** The daemon's failure in our words. */
export function daemonFailure(host: AskedHost, what: string, error: unknown): LaunchFailure {
  if (error instanceof LaunchFailure) return error;
  const text = textOf(error).slice(0, 400);
  const made = (code: FleetReason["code"], message: string, remedy: string | null, retryable: boolean): LaunchFailure =>
    new LaunchFailure({ code, message: message.slice(0, 600), remedy }, { cause: error, retryable });
  if (/could not select device driver|CDI device injection failed|unresolvable CDI devices|unknown runtime/i.test(text))
    return made(
      "no-gpu-runtime",
      `Docker on ${host.name} can give containers no GPU (${text})`,
      gpuRuntimeRemedy(host.name),
      false,
    );
  if (/no such image/i.test(text))
    return made(
      "no-image",
      `${what}: ${host.name} does not have the image (${text})`,
      `load or pull it on ${host.name}`,
      false,
    );
  const status = statusOf(error);
  if (status === null)
    return made("unavailable", `Docker on ${host.name} does not answer (${text})`, host.remedy, true);
  return made("launch-failed", `${what}: Docker on ${host.name} says: ${text}`, null, status >= 500);
}
