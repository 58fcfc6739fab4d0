/** A text as a header's value: what a header can't hold becomes an underscore; at most 200 characters. */
export const headerSafe = (text: string): string => text.replace(/[^\x21-\x7e]/g, "_").slice(0, 200);
