/**
 * Tokens cut to a number of them, head and tail kept. Invariant: the result is never longer than `maxTokens`; what is not cut
 * stays the same array.
 * @param notice tokens that say in the gap how many were cut; where they don't fit, the head alone is given
 * @param mayCutAt whether the text may be cut before that token: a token that starts in the middle of a character may not be
 *   where a part begins. Looked for in at most 8 places; absent: anywhere
 */
export function cutTokens(
  tokens: readonly number[],
  maxTokens: number,
  notice: (cutTokens: number) => readonly number[],
  mayCutAt: (index: number) => boolean = () => true,
): { readonly tokens: readonly number[]; readonly cutTokens: number } {
  if (tokens.length <= maxTokens) return { tokens, cutTokens: 0 };
  // With other numbers in it a notice may have another length: room for the longest of the likely ones, and a last look.
  const room = maxTokens - Math.max(notice(tokens.length).length, notice(tokens.length - maxTokens).length);
  const headEnd = room < 1 ? maxTokens : Math.ceil(room / 2);
  const head = tokens.slice(0, search(headEnd, -1, mayCutAt, tokens.length));
  if (room < 1) return { tokens: head, cutTokens: tokens.length - head.length };
  const tail = tokens.slice(search(tokens.length - Math.floor(room / 2), 1, mayCutAt, tokens.length));
  const cut = tokens.length - head.length - tail.length;
  const said = notice(cut);
  const over = Math.max(0, head.length + said.length + tail.length - maxTokens);
  return { tokens: [...head.slice(0, Math.max(0, head.length - over)), ...said, ...tail], cutTokens: cut + over };
}

const reach = 8;

/** The nearest place from `from` on in that direction where text may be cut; `from` itself when there is none. */
function search(from: number, step: -1 | 1, mayCutAt: (index: number) => boolean, end: number): number {
  for (let at = from; Math.abs(at - from) <= reach && at > 0 && at < end; at += step) if (mayCutAt(at)) return at;
  return from;
}
