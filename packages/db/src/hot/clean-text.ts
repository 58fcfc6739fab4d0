/**
 * What Postgres can't hold: NUL in text or JSON, and surrogate halves. Both get a visible stand-in (U+2400, U+FFFD) in values
 * and in keys, so whatever a model or tool prints can be stored and one such text never fails its batch.
 */
import type { z } from "zod";

// With the u flag a surrogate matches only where it stands alone.
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
const unstorable = /[\u0000\p{Surrogate}]/gu;

/** The text as it can be stored; the same string when there is nothing to replace. */
export const cleanText = (text: string): string =>
  text.replace(unstorable, (found) => (found === "\u0000" ? "\u2400" : "\uFFFD"));

/** A JSON value with every text in it cleaned, keys included; non-finite numbers, which JSON has not, become null. */
export function cleanJson(value: z.core.util.JSONType): z.core.util.JSONType {
  if (typeof value === "string") return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanJson);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [cleanText(key), cleanJson(held)]));
}

/** Text of an event takes at most this: the body as a whole stays within 2 KB. */
const maxBytes = 1_400;

/** Cut to at most `max` UTF-16 units, and to what an event can hold, without leaving half a character. */
export function cutText(text: string, max: number): string {
  const clean = cleanText(text);
  let units = clean.length;
  if (units > max) units = max - 1;
  // No unit takes more than three bytes, so a short text needs no counting.
  while (units * 3 > maxBytes && Buffer.byteLength(clean.slice(0, units)) > maxBytes) units = Math.floor(units * 0.9);
  return units === clean.length ? clean : `${clean.slice(0, units).replace(/\p{Surrogate}$/u, "")}…`;
}
