/**
 * Text in which nothing hides: characters that move the cursor, turn the direction or have no width are shown by their names. What is
 * shown is never markup, whatever it says; this is about what a reader would not see. Pure.
 */
const hidden =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is made visible
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Tabs stay. */
export const visibleText = (text: string): string => text.replace(hidden, named);

function named(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}
