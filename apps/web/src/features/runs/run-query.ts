/** The query bar's text, edited by chips: `status:running -tag:x words`. Pure. */
const words = (query: string): string[] => query.trim().split(/\s+/).filter(Boolean);

export const hasTerm = (query: string, term: string): boolean => words(query).includes(term);

/** Sets `key:value` (one value per key); null removes the key. */
export function withTerm(query: string, key: string, value: string | null): string {
  const rest = words(query).filter((word) => !word.startsWith(`${key}:`));
  return [...(value === null ? [] : [`${key}:${value}`]), ...rest].join(" ");
}

/** The terms a person could remove when nothing matches. */
export const terms = (query: string): string[] => words(query);
export const withoutTerm = (query: string, term: string): string =>
  words(query)
    .filter((word) => word !== term)
    .join(" ");
