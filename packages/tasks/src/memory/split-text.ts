/**
 * A long text in parts of a bounded size. Pure. Invariants: the parts joined are the text; no part is empty or longer than
 * the bound in UTF-8 bytes; a part ends at a document's border if one is near enough, else after a paragraph, a sentence, a
 * word, and only then inside a word, but never inside a character.
 */

/** Where a document begins: `Document 12:` at the start of a line. */
const documentStart = /^Document \d+:/gmu;

/** Ways to end a part, best first; each match ends where the next part may begin. */
const borders = [/\n\s*\n/gu, /\n/gu, /[.!?。！？][\s"'”’)\]]*/gu, /\s+/gu] as const;

/** A part that a border would leave shorter than this share of the bound is cut at a lesser border instead. */
const leastShare = 0.5;

/** @param maxBytes at least 4, so that any character fits @throws RangeError below */
export function splitText(text: string, maxBytes: number): string[] {
  if (maxBytes < 4) throw new RangeError(`parts of ${maxBytes} bytes can't hold every character`);
  const parts: string[] = [];
  let held = "";
  let heldBytes = 0;
  const flush = () => {
    if (held !== "") parts.push(held);
    held = "";
    heldBytes = 0;
  };
  for (const document of documentsOf(text)) {
    for (const piece of piecesOf(document, maxBytes)) {
      const bytes = Buffer.byteLength(piece);
      if (heldBytes + bytes > maxBytes) flush();
      held += piece;
      heldBytes += bytes;
    }
  }
  flush();
  return parts;
}

function documentsOf(text: string): string[] {
  const starts = [...text.matchAll(documentStart)].map(({ index }) => index).filter((index) => index > 0);
  return [0, ...starts].map((start, at) => text.slice(start, starts[at] ?? text.length)).filter((part) => part !== "");
}

/** The document whole if it fits, else pieces of at most the bound. */
function* piecesOf(document: string, maxBytes: number): Generator<string> {
  for (let rest = document; rest !== ""; ) {
    const fits = longestPrefix(rest, maxBytes);
    const end = fits === rest.length ? fits : bestEnd(rest.slice(0, fits));
    yield rest.slice(0, end);
    rest = rest.slice(end);
  }
}

/** UTF-16 length of the longest prefix within the bound that ends between characters. */
function longestPrefix(text: string, maxBytes: number): number {
  let bytes = 0;
  let length = 0;
  for (const character of text.slice(0, maxBytes)) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) return length;
    length += character.length;
  }
  return length;
}

function bestEnd(prefix: string): number {
  for (const border of borders) {
    const last = [...prefix.matchAll(border)].at(-1);
    const end = last === undefined ? 0 : last.index + last[0].length;
    if (end >= prefix.length * leastShare) return end;
  }
  return prefix.length;
}
