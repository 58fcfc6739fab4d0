/** Pure: each `seq` once, in order, from after the last hole to the end. */
export function consecutiveEnd<E extends { readonly seq: number }>(events: readonly E[]): E[] {
  const sorted = [...new Map(events.map((event) => [event.seq, event])).values()].sort((a, b) => a.seq - b.seq);
  let from = sorted.length - 1;
  while (from > 0 && sorted[from - 1]?.seq === (sorted[from]?.seq ?? 0) - 1) from -= 1;
  return sorted.slice(Math.max(0, from));
}
