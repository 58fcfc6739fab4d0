/**
 * When a server says that it may be asked again: seconds or an HTTP date. Anything else counts as not said.
 * @param nowMs wall clock @returns milliseconds from now, null when absent, negative or unreadable
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const trimmed = value.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) * 1000;
  // Date.parse also takes things like "-1": only real dates, which name a day.
  const date = /[a-z]{3}/i.test(trimmed) ? Date.parse(trimmed) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}
