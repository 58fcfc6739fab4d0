/** The name a person most likely meant: fewest edits, a swap of neighbours counting as one. Pure. */

/** @returns null when nothing is near enough to be worth suggesting */
export function nearestName(name: string, candidates: readonly string[]): string | null {
  const wanted = normal(name.slice(0, 100));
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, normal(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Case and word separators are how people misremember names, not what they mean. */
const normal = (name: string): string => name.toLowerCase().replaceAll(/[-_\s]/gu, "");

function editDistance(a: string, b: string): number {
  const width = b.length + 1;
  const cost = new Array<number>((a.length + 1) * width).fill(0);
  const at = (i: number, j: number): number => cost[i * width + j] ?? 0;
  for (let i = 0; i <= a.length; i++)
    for (let j = 0; j <= b.length; j++) {
      if (i === 0 || j === 0) {
        cost[i * width + j] = i + j;
        continue;
      }
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + same);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) least = Math.min(least, at(i - 2, j - 2) + 1);
      cost[i * width + j] = least;
    }
  return at(a.length, b.length);
}
