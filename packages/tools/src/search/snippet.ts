/** The part of a text that is shown. Pure. */
import { textPlace } from "../text-place.ts";

/** Share of a snippet that goes before the first word found. */
const lead = 0.2;

/**
 * A text of at most `limit` characters as it is; of a longer one a piece around the first of the words that occurs in it, cut
 * ends marked by "…". Never cuts a surrogate pair.
 */
export function snippet(text: string, words: readonly string[], limit: number): string {
  if (text.length <= limit) return text;
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place !== -1);
  const first = places.length === 0 ? 0 : Math.min(...places);
  const from = textPlace(text, Math.max(0, Math.min(first - Math.floor(limit * lead), text.length - limit)));
  const to = textPlace(text, from + limit);
  return `${from > 0 ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`;
}
