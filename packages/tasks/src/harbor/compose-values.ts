/** Values of compose files: durations, sizes, numbers. */
import { megabytes } from "./task-file.ts";

/** Of `1m30s`, `500ms`, `2h`; null for anything else. */
export function composeMilliseconds(text: string): number | null {
  if (!/^(?:[0-9]+(?:\.[0-9]+)?(?:ms|us|h|m|s))+$/u.test(text)) return null;
  const factors: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 0.001 };
  return [...text.matchAll(/([0-9.]+)(ms|us|h|m|s)/gu)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (factors[unit ?? "s"] ?? 0),
    0,
  );
}

export function composeNumber(
  text: string | undefined,
  path: string,
  refuse: (message: string) => void,
): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  refuse(`${path}: is no number`);
  return null;
}

export function composeMemoryMb(text: string, path: string, refuse: (message: string) => void): number | null {
  const read = /^[0-9]+$/u.test(text) ? Math.floor(Number(text) / 1_048_576) : megabytes(text);
  if (read === null) refuse(`${path}: is no size such as 512M`);
  return read;
}
