/** Class names that are set, in order. */
export const join = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(" ");
