/** Times: relative with the exact UTC on hover; durations by their two largest parts. Pure: the clock is an argument. */
import { missing, thinSpace } from "./numbers.ts";

export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return missing;
  if (ms < 1) return `${ms === 0 ? 0 : ms.toPrecision(2)}${thinSpace}ms`;
  if (ms < 1000) return `${Math.round(ms)}${thinSpace}ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}${thinSpace}s`;
  if (seconds < 59.5) return `${Math.round(seconds)}${thinSpace}s`;
  const whole = Math.round(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor((whole % 86_400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${thinSpace}${unit}`)
    .join(" ");
}

/** A moment since a beginning, to a tenth of a second however late it is: `0.8 s`, `1:02.4`, `1:02:03.4`. */
export function formatMoment(ms: number): string {
  const tenths = Math.round(Math.max(0, ms) / 100);
  const second = ((tenths % 600) / 10).toFixed(1);
  const minutes = Math.floor(tenths / 600);
  if (minutes === 0) return `${second}${thinSpace}s`;
  const two = (count: number | string) => String(count).padStart(2, "0");
  const clock = `${second.padStart(4, "0")}`;
  return minutes < 60 ? `${minutes}:${clock}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${clock}`;
}

export function formatAgo(at: string | null | undefined, now: number): string {
  if (!at) return missing;
  const elapsed = now - Date.parse(at);
  if (elapsed < 5_000) return "just now";
  const [first = missing] = formatDuration(elapsed).split(" ");
  return `${first} ago`;
}

/** `2026-11-29 18:49:07 UTC`. */
export function formatUtc(at: string | null | undefined): string {
  if (!at) return missing;
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? missing : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Clock time in UTC with milliseconds, for logs. */
export const formatClock = (at: string): string => new Date(at).toISOString().slice(11, 23);
