/** How deep JSON from strangers may be nested: it is parsed at any depth, but whatever walks or writes it again runs out of stack. */

/** Deeper than any config or argument; far below what a recursive walk can take. */
export const maxJsonDepth = 64;

/** Deepest nesting of brackets outside strings. Linear, no recursion: safe on any text. */
export function jsonDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return deepest;
}
