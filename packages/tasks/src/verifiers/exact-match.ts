/**
 * Normalised exact match of question answering: two answers agree when nothing but case, punctuation, English articles, width
 * and spacing sets them apart. As the customary rule of SQuAD and its followers, with two differences that only ever refuse
 * what that rule confuses: a decimal point stays ("3.5" is not "35"), and an answer that would normalise to nothing ("A", "!")
 * is compared as it stands. Pure.
 */

const articles = /(?<![\p{L}\p{N}])(?:a|an|the)(?![\p{L}\p{N}])/gu;
/** Punctuation of any script and ASCII symbols, but for a point between digits. */
const marks = /(?!(?<=\p{N})\.(?=\p{N}))[\p{P}$+<=>^`|~]/gu;

const folded = (text: string): string => text.normalize("NFKC").toLowerCase().trim().replace(/\s+/gu, " ");

/** The form in which answers are compared. */
export function normalisedAnswer(text: string): string {
  const plain = folded(text);
  const bare = folded(plain.replace(marks, "").replace(articles, " "));
  return bare === "" ? plain : bare;
}

/** Is it one of the accepted answers? No answer and an empty one never are. */
export function exactMatch(given: string | null, accepted: readonly string[]): boolean {
  if (given === null) return false;
  const answer = normalisedAnswer(given);
  return answer !== "" && accepted.some((other) => normalisedAnswer(other) === answer);
}
