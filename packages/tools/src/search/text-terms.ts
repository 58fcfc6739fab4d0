/**
 * The terms of a text, for documents and queries alike: compatibility-normalised, lower-cased runs of letters, marks and digits.
 * Scripts written without spaces have no runs that mean a word; there each character is a term. Pure.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: the whole of ASCII is meant
const ascii = /^[\u0000-\u007f]*$/;
const run = /[\p{L}\p{M}\p{N}]+/gu;
const spaceless = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
const spacelessOrRun = new RegExp(`${spaceless.source}|(?:(?!${spaceless.source})[\\p{L}\\p{M}\\p{N}])+`, "gu");

/** In the order of the text, repeated as often as they occur. */
export function textTerms(text: string): string[] {
  // Most texts, and four times as fast.
  if (ascii.test(text)) return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const runs = text.normalize("NFKC").toLowerCase().match(run) ?? [];
  return runs.flatMap((term) => (spaceless.test(term) ? (term.match(spacelessOrRun) ?? []) : [term]));
}
