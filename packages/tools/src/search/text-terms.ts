/**
 * The terms of a text, for documents and queries alike: compatibility-normalised, lower-cased runs of letters, marks and digits.
 * Scripts written without spaces have no runs that mean a word; there each character is a term. Pure.
 */

const run = /[\p{L}\p{M}\p{N}]+/gu;
const spaceless = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
const spacelessOrRun = new RegExp(`${spaceless.source}|(?:(?!${spaceless.source})[\\p{L}\\p{M}\\p{N}])+`, "gu");

/** In the order of the text, repeated as often as they occur. */
export function textTerms(text: string): string[] {
  const runs = text.normalize("NFKC").toLowerCase().match(run) ?? [];
  return runs.flatMap((term) => (spaceless.test(term) ? (term.match(spacelessOrRun) ?? []) : [term]));
}
