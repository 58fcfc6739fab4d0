/**
 * Tool output as a model, a database and a browser can all take it. Invariants: the result is well-formed Unicode without
 * NUL or terminal escapes, at most `maxBytes` of UTF-8 long; what was cut says so, with numbers, in its place.
 */

// biome-ignore-all lint/suspicious/noControlCharactersInRegex: control characters are what this file removes

/** CSI (colours, cursor), closed OSC and other control strings, then any other escape by its final character. */
const escapes =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,2048}(?:\u0007|\u001b\\)|[PX^_][^\u001b]{0,2048}\u001b\\|[ -/]*[0-~])?/g;
/** C0 but tab, line feed and carriage return, and DEL. */
const controls = /[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const loneSurrogates = /\p{Surrogate}/gu;

/** @param maxBytes limit of the result in UTF-8 bytes, at least 64 */
export function makeSafeOutput(output: string, maxBytes: number): string {
  const clean = output
    .replace(escapes, "")
    .replaceAll("\u0000", "\u2400")
    .replace(controls, "\ufffd")
    .replace(loneSurrogates, "\ufffd");
  return cutMiddle(clean, maxBytes);
}

/** Keeps head and tail: errors tend to stand at the end, what was asked for at the start. */
function cutMiddle(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at most 3 bytes: most outputs need no encoding to be known short.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return text;
  const notice = (cut: number) => `\n[... ${cut} of ${bytes.length} bytes cut ...]\n`;
  // The notice is ASCII and never longer than with the largest number.
  const room = Math.max(0, maxBytes - notice(bytes.length).length);
  const head = endOfCharacter(bytes, Math.ceil(room / 2));
  const tail = startOfCharacter(bytes, bytes.length - Math.floor(room / 2));
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return decoder.decode(bytes.subarray(0, head)) + notice(tail - head) + decoder.decode(bytes.subarray(tail));
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function endOfCharacter(bytes: Uint8Array, position: number): number {
  let end = position;
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return end;
}
function startOfCharacter(bytes: Uint8Array, position: number): number {
  let start = position;
  while (start < bytes.length && isContinuation(bytes[start])) start += 1;
  return start;
}
