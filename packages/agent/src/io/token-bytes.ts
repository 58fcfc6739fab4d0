/**
 * Byte-level tokenizers write each byte as one printable character. Invariant: the mapping is a bijection of the 256 bytes,
 * so a token's text gives back its exact bytes even where they are no UTF-8 on their own.
 */

/** Printable Latin-1 bytes stand for themselves, the others take the characters from U+0100 on, in order. */
function byteCharacters(): string[] {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}
const byteOf = new Map(byteCharacters().map((character, byte) => [character, byte]));

/** The bytes of a byte-level token; null when it holds a character that is none of the 256. */
export function tokenBytes(token: string): number[] | null {
  const bytes: number[] = [];
  for (const character of token) {
    const byte = byteOf.get(character);
    if (byte === undefined) return null;
    bytes.push(byte);
  }
  return bytes;
}

/** Text of the bytes; each byte that is no part of a whole UTF-8 character is shown as <0xNN>. */
export function showBytes(bytes: readonly number[]): string {
  let text = "";
  let position = 0;
  while (position < bytes.length) {
    const character = characterAt(bytes, position);
    if (character === null) text += `<0x${(bytes[position] ?? 0).toString(16).toUpperCase().padStart(2, "0")}>`;
    else text += character;
    position += character === null ? 1 : new TextEncoder().encode(character).length;
  }
  return text;
}

function characterAt(bytes: readonly number[], position: number): string | null {
  const first = bytes[position] ?? 0;
  const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const slice = Uint8Array.from(bytes.slice(position, position + length));
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(slice);
  return slice.length === length && !text.includes("\ufffd") ? text : wholeReplacement(slice, text);
}

/** U+FFFD itself is a character like any other. */
const wholeReplacement = (slice: Uint8Array, text: string): string | null =>
  text === "\ufffd" && slice[0] === 0xef && slice[1] === 0xbf && slice[2] === 0xbd ? text : null;
