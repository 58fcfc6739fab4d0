/** Finds words in what the page holds of a rollout's turns: previews, arguments, results. Pure. */
import type { TurnView } from "@rolldeck/contracts/api/rollouts";

export interface Found {
  readonly turn: number;
  /** Where in the turn. */
  readonly part: string;
  readonly before: string;
  readonly match: string;
  readonly after: string;
}
export interface FindResult {
  /** In reading order, at most `mostShown`. */
  readonly found: readonly Found[];
  /** All there are. */
  readonly total: number;
}
export const mostShown = 200;
const around = 40;

/** Case does not count; an empty text finds nothing. */
export function findInTurns(turns: readonly TurnView[], text: string): FindResult {
  if (text.trim() === "") return { found: [], total: 0 };
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
  const found: Found[] = [];
  let total = 0;
  for (const turn of turns)
    for (const [part, words] of partsOf(turn))
      for (const match of words.matchAll(pattern)) {
        total += 1;
        if (found.length < mostShown)
          found.push({ turn: turn.turn, part, ...excerpt(words, match.index, match[0].length) });
      }
  return { found, total };
}

function partsOf(turn: TurnView): (readonly [string, string])[] {
  return [
    ...turn.added.map((added) => [added.origin, added.preview.text] as const),
    ["policy", turn.sampled.text],
    ["told", turn.parseError ?? ""],
    ...turn.notes.map((note) => ["note", note.message] as const),
    ...turn.calls.flatMap((call): (readonly [string, string])[] => [
      [`${call.name} arguments`, JSON.stringify(call.arguments)],
      [`${call.name} result`, call.output?.text ?? ""],
      [`${call.name} error`, call.error?.message ?? ""],
    ]),
  ];
}

function excerpt(text: string, start: number, length: number): Pick<Found, "before" | "match" | "after"> {
  const end = start + length;
  const line = (part: string) => part.replace(/\s+/g, " ");
  return {
    before: line(text.slice(Math.max(0, start - around), start)),
    match: text.slice(start, end),
    after: line(text.slice(end, end + around)),
  };
}
