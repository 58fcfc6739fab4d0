/** Labels at line ends, moved apart so that none overlaps: heights in pixels, null where a series has no end. Pure. */
const lineHeight = 14;

export function endLabels(wanted: readonly (number | null)[], top: number, bottom: number): (number | null)[] {
  const order = wanted
    .flatMap((y, index) => (y === null ? [] : [{ index, y }]))
    .sort((a, b) => a.y - b.y || a.index - b.index);
  let floor = top;
  for (const label of order) {
    label.y = Math.max(label.y, floor);
    floor = label.y + lineHeight;
  }
  let ceiling = bottom;
  for (const label of order.toReversed()) {
    label.y = Math.min(label.y, ceiling);
    ceiling = label.y - lineHeight;
  }
  const placed: (number | null)[] = wanted.map(() => null);
  for (const label of order) placed[label.index] = label.y;
  return placed;
}
