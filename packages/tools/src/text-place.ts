/** Where a text may be cut: never inside a character that is two units long. Places count UTF-16 units. */

/** The place itself, or one earlier where it is inside a surrogate pair. */
export const textPlace = (text: string, place: number): number =>
  /[\uDC00-\uDFFF]/.test(text.charAt(place)) && /[\uD800-\uDBFF]/.test(text.charAt(place - 1)) ? place - 1 : place;

/** The start of a text, of at most this many units. */
export const textStart = (text: string, maxUnits: number): string => text.slice(0, textPlace(text, maxUnits));
