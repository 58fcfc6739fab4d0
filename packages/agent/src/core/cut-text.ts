/**
 * Text cut to a number of UTF-8 bytes: head and tail stay, because what was asked for tends to stand at the start and what went
 * wrong at the end. Invariants: the result is well formed when the text is, and never longer than asked; no character is cut,
 * nor a sequence that is shown as one (an emoji with its joiners, a letter with its accents) of up to 64 units.
 */

/** A text of which the middle may be gone already: `gapBytes` are missing between `head` and `tail`. */
export interface TextEnds {
  readonly head: string;
  readonly gapBytes: number;
  readonly tail: string;
}

/** Units encoded at a time: counting needs room for this many, however long the text is. */
const chunkUnits = 16_384;
const scratch = new Uint8Array(chunkUnits * 3);

/** UTF-8 bytes of a text; a lone surrogate counts as U+FFFD, which is what any encoder writes for it. */
export function utf8Length(text: string): number {
  const encoder = new TextEncoder();
  let bytes = 0;
  for (let at = 0; at < text.length; ) {
    const end = Math.min(at + chunkUnits, text.length);
    const whole = end < text.length && isPair(text, end - 1) ? end - 1 : end;
    bytes += encoder.encodeInto(text.slice(at, whole), scratch).written;
    at = whole;
  }
  return bytes;
}

/** @param maxBytes limit of the result with its notice; where not even the notice fits, the head alone is given */
export function cutMiddle({ head, gapBytes, tail }: TextEnds, maxBytes: number): { text: string; cutBytes: number } {
  const whole = utf8Length(head) + gapBytes + utf8Length(tail);
  if (gapBytes === 0 && whole <= maxBytes) return { text: head + tail, cutBytes: 0 };
  const notice = (cut: number) => `\n[... ${cut} of ${whole} bytes cut ...]\n`;
  // ASCII, and never longer than with the largest number.
  const room = maxBytes - notice(whole).length;
  if (room < 0) {
    const start = headWithin(head, maxBytes);
    return { text: start, cutBytes: whole - utf8Length(start) };
  }
  const half = Math.ceil(room / 2);
  const noGap = gapBytes === 0;
  const all = noGap ? head + tail : head;
  // Where one end is short, the other gets what it leaves.
  const start = headWithin(all, noGap ? half : Math.max(half, room - utf8Length(tail)));
  const startBytes = utf8Length(start);
  const end = tailWithin(noGap ? all.slice(start.length) : tail, room - startBytes);
  const cutBytes = whole - startBytes - utf8Length(end);
  return { text: start + notice(cutBytes) + end, cutBytes };
}

/** The longest start of `text` within `maxBytes`. */
export function headWithin(text: string, maxBytes: number): string {
  let units = 0;
  for (let bytes = 0; units < text.length; ) {
    const size = isPair(text, units) ? 2 : 1;
    bytes += size === 2 ? 4 : unitBytes(text.charCodeAt(units));
    if (bytes > maxBytes) break;
    units += size;
  }
  return text.slice(0, startOfCluster(text, units));
}

/** The longest end of `text` within `maxBytes`. */
export function tailWithin(text: string, maxBytes: number): string {
  let units = text.length;
  for (let bytes = 0; units > 0; ) {
    const size = isPair(text, units - 2) ? 2 : 1;
    bytes += size === 2 ? 4 : unitBytes(text.charCodeAt(units - 1));
    if (bytes > maxBytes) break;
    units -= size;
  }
  return text.slice(endOfCluster(text, units));
}

const unitBytes = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);

function isPair(text: string, at: number): boolean {
  const [high, low] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  return high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff;
}

/** How far around a cut a sequence is looked for. */
const reach = 64;
const clusters = new Intl.Segmenter("und", { granularity: "grapheme" });

/** The cluster that `at` lies in the middle of; null where a cluster begins, or its start is out of reach. */
function clusterAround(text: string, at: number): { start: number; end: number } | null {
  if (at <= 0 || at >= text.length) return null;
  // Between two ASCII characters, other than the two halves of a line end, a cluster always begins.
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  if (before < 0x80 && after < 0x80 && !(before === 0x0d && after === 0x0a)) return null;
  let from = Math.max(0, at - reach);
  if (isPair(text, from - 1)) from += 1;
  const segment = clusters.segment(text.slice(from, at + reach)).containing(at - from);
  if (segment === undefined || from + segment.index === at) return null;
  const start = from + segment.index;
  return start === from && from > 0 ? null : { start, end: start + segment.segment.length };
}
const startOfCluster = (text: string, at: number): number => clusterAround(text, at)?.start ?? at;
const endOfCluster = (text: string, at: number): number => clusterAround(text, at)?.end ?? at;
