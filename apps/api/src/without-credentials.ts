/** A text with the user and password of every address in it left out: it may be shown, stored and logged. */
export const withoutCredentials = (text: string): string => text.replaceAll(/\/\/[^/\s]*@/gu, "//…@");
