/** Whether a text holds half of a surrogate pair: JSON can say one, but it is no character, and as bytes it would become another. */
export const hasHalfPair = (text: string): boolean => /\p{Surrogate}/u.test(text);
