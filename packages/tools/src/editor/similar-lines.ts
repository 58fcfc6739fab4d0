/**
 * Lines that look like a given one, by the Ratcliff–Obershelp ratio (2 · matching characters ÷ all characters) that Python's difflib
 * uses: which lines are offered is part of what agents were trained on.
 */

const cutoff = 0.6;
/** Longer lines are data, not code, and cost the square of their length. */
const maxCharacters = 1000;
/** Lines whose ratio is worked out in full. */
const maxCompared = 2000;
/** Pairs of equal letters looked at in all; lines of few letters have the square of their length, again and again. */
const maxPairs = 10_000_000;

/** The best first, at most `count`. */
export function similarLines(line: string, lines: readonly string[], count: number): string[] {
  if (line.length > maxCharacters) return [];
  const letters = counted(line);
  const scored: { readonly text: string; readonly ratio: number }[] = [];
  const work = { pairs: 0 };
  let compared = 0;
  for (const text of lines) {
    if (work.pairs > maxPairs) break;
    if (text.length > maxCharacters || !couldReach(text, line, letters)) continue;
    if (compared++ >= maxCompared) break;
    const ratio = similarity(text, line, work);
    if (ratio >= cutoff) scored.push({ text, ratio });
  }
  return scored
    .sort((a, b) => b.ratio - a.ratio || (a.text < b.text ? 1 : -1))
    .slice(0, count)
    .map(({ text }) => text);
}

interface Work {
  /** Of equal letters, looked at so far. */
  pairs: number;
}

/** 0 to 1; 1 for equal texts. */
export function similarity(a: string, b: string, work: Work = { pairs: 0 }): number {
  const total = a.length + b.length;
  return total === 0 ? 1 : (2 * matchingCharacters(a, b, work)) / total;
}

/** Two upper bounds of the ratio: by length, and by the letters both have. */
function couldReach(text: string, line: string, letters: ReadonlyMap<string, number>): boolean {
  const total = text.length + line.length;
  if (total === 0) return true;
  if ((2 * Math.min(text.length, line.length)) / total < cutoff) return false;
  const left = new Map(letters);
  let common = 0;
  for (const letter of text) {
    const available = left.get(letter) ?? 0;
    if (available > 0) common += letter.length;
    left.set(letter, available - 1);
  }
  return (2 * common) / total >= cutoff;
}

function counted(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  return counts;
}

/** Characters in the longest common block, and in those left and right of it. */
function matchingCharacters(a: string, b: string, work: Work): number {
  const places = placesOf(b);
  let total = 0;
  const open: [aLow: number, aHigh: number, bLow: number, bHigh: number][] = [[0, a.length, 0, b.length]];
  for (let range = open.pop(); range !== undefined; range = open.pop()) {
    const [aLow, aHigh, bLow, bHigh] = range;
    const { atA, atB, size } = longestBlock(a, places, range, work);
    if (size === 0) continue;
    total += size;
    open.push([aLow, atA, bLow, atB], [atA + size, aHigh, atB + size, bHigh]);
  }
  return total;
}

/** Python leaves letters out that are in more than 1 % of a text of 200 or more. */
function placesOf(b: string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (let at = 0; at < b.length; at++) {
    const letter = b.charAt(at);
    const known = places.get(letter);
    if (known) known.push(at);
    else places.set(letter, [at]);
  }
  if (b.length < 200) return places;
  const popular = Math.floor(b.length / 100) + 1;
  return new Map([...places].filter(([, where]) => where.length <= popular));
}

function longestBlock(
  a: string,
  places: ReadonlyMap<string, readonly number[]>,
  [aLow, aHigh, bLow, bHigh]: readonly [number, number, number, number],
  work: Work,
): { readonly atA: number; readonly atB: number; readonly size: number } {
  let best = { atA: aLow, atB: bLow, size: 0 };
  let lengths = new Map<number, number>();
  for (let i = aLow; i < aHigh; i++) {
    const next = new Map<number, number>();
    for (const j of places.get(a.charAt(i)) ?? []) {
      work.pairs += 1;
      if (j < bLow) continue;
      if (j >= bHigh) break;
      const size = (lengths.get(j - 1) ?? 0) + 1;
      next.set(j, size);
      if (size > best.size) best = { atA: i - size + 1, atB: j - size + 1, size };
    }
    lengths = next;
  }
  return best;
}
