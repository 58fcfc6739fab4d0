/**
 * Edits of a text whose lines may end in \n, \r\n or both. The text is matched as if every line ended in \n; invariant: outside of
 * what an edit changes, not a character differs, and what it adds ends its lines as its neighbours do.
 */

export interface Match {
  /** Place in the text as it is. */
  readonly start: number;
  readonly end: number;
  /** Line on which it begins, from 1. */
  readonly line: number;
}

/** With every \r\n as \n. */
export const unixText = (text: string): string => text.replaceAll("\r\n", "\n");

/** Matches from left to right; with `overlapping`, each may begin inside the one before. At most `limit`. */
export function findText(
  text: string,
  wanted: string,
  { overlapping = false, limit = 10_000 }: { readonly overlapping?: boolean; readonly limit?: number } = {},
): Match[] {
  const plain = unixText(text);
  const needle = unixText(wanted);
  const places: number[] = [];
  const step = overlapping ? 1 : Math.max(1, needle.length);
  for (let at = plain.indexOf(needle); at !== -1 && places.length < limit; at = plain.indexOf(needle, at + step)) {
    places.push(at);
    // An empty text is found behind the last character again and again.
    if (at + step > plain.length) break;
  }
  const original = placesIn(text);
  const lineAt = lineCounter(plain);
  return places.map((at) => ({ start: original(at), end: original(at + needle.length), line: lineAt(at) }));
}

/** The match gives way to `replacement`; what both have in common at their ends is left as it is. */
export function replaceMatch(text: string, match: Match, replacement: string): string {
  const old = text.slice(match.start, match.end);
  const ending = endingAt(text, match.start, old);
  const fresh = withEnding(replacement, ending);
  const plainOld = unixText(old);
  const plainNew = unixText(fresh);
  let head = 0;
  while (head < plainOld.length && head < plainNew.length && plainOld[head] === plainNew[head]) head += 1;
  let tail = 0;
  while (
    tail < plainOld.length - head &&
    tail < plainNew.length - head &&
    plainOld[plainOld.length - 1 - tail] === plainNew[plainNew.length - 1 - tail]
  ) {
    tail += 1;
  }
  const original = placesIn(old);
  const middle = withEnding(plainNew.slice(head, plainNew.length - tail), ending);
  const keptHead = old.slice(0, original(head));
  const keptTail = old.slice(original(plainOld.length - tail));
  const kept = ending === "\r\n" ? middle : restoreCarriageReturns(middle, fresh, plainNew, head, tail);
  return text.slice(0, match.start) + keptHead + kept + keptTail + text.slice(match.end);
}

/** In a text of \n lines, \r\n that the edit itself wrote is written so. */
function restoreCarriageReturns(middle: string, fresh: string, plain: string, head: number, tail: number): string {
  if (!fresh.includes("\r\n")) return middle;
  const original = placesIn(fresh);
  return fresh.slice(original(head), original(plain.length - tail));
}

/** Lines by \n, as Python's `split("\n")` has them: behind a final line end there is an empty one. */
export const splitLines = (text: string): string[] => unixText(text).split("\n");

/** Lines that a reader counts: no empty one behind a final line end. */
export function countLines(text: string): number {
  const lines = splitLines(text);
  return lines.at(-1) === "" ? lines.length - 1 : lines.length;
}

/** `added` as lines of its own behind line `after`; 0 = before all. */
export function insertLines(text: string, after: number, added: string): string {
  const starts = lineStarts(text);
  const at = starts[after];
  if (at !== undefined) {
    const ending = endingNear(text, at);
    return `${text.slice(0, at)}${withEnding(added, ending)}${ending}${text.slice(at)}`;
  }
  // Behind a last line without an end, which then gets one and the new last line has none.
  const ending = endingNear(text, text.length);
  return `${text}${ending}${withEnding(added, ending)}`;
}

const withEnding = (text: string, ending: string): string =>
  ending === "\r\n" ? unixText(text).replaceAll("\n", "\r\n") : text;

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** How the lines of the matched text end: the first in it, else the one it lies on. */
function endingAt(text: string, start: number, old: string): string {
  const inside = old.indexOf("\n");
  if (inside !== -1) return old[inside - 1] === "\r" ? "\r\n" : "\n";
  return endingNear(text, start);
}

/** Of the line before, else of the line at that place, else \n. */
function endingNear(text: string, at: number): string {
  const before = at > 0 ? text.lastIndexOf("\n", at - 1) : -1;
  const near = before === -1 ? text.indexOf("\n", at) : before;
  return near > 0 && text[near - 1] === "\r" ? "\r\n" : "\n";
}

/** Places of the \n text in the text as it is: each \r\n before one moves it by one. */
function placesIn(text: string): (plainPlace: number) => number {
  const removed: number[] = [];
  for (let at = text.indexOf("\r\n"); at !== -1; at = text.indexOf("\r\n", at + 2)) removed.push(at - removed.length);
  return (plain) => {
    let low = 0;
    let high = removed.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((removed[middle] ?? 0) < plain) low = middle + 1;
      else high = middle;
    }
    return plain + low;
  };
}

/** Asked in rising order, it reads the text once. */
function lineCounter(plain: string): (place: number) => number {
  let line = 1;
  let next = plain.indexOf("\n");
  return (place) => {
    while (next !== -1 && next < place) {
      line += 1;
      next = plain.indexOf("\n", next + 1);
    }
    return line;
  };
}
