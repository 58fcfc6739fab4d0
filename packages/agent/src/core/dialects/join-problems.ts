/** What the model is told at once; more of the same would only fill its context. */
const shownProblems = 5;

/** One problem a line, the first few; null when there is none. */
export function joinProblems(problems: readonly string[]): string | null {
  if (problems.length === 0) return null;
  const more = problems.length - shownProblems;
  return [...problems.slice(0, shownProblems), ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
