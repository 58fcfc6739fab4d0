/**
 * Over something malformed, from before its opening bracket to after the one that closes it. Strings are respected: nothing
 * inside one is ever taken for a call.
 */
export function skipBalanced(
  text: string,
  open: number,
  closer: string,
): { readonly position: number; readonly closed: boolean } {
  let depth = 0;
  for (let position = open; position < text.length; position++) {
    const character = text[position];
    if (character === '"' || character === "'") {
      const end = endOfString(text, position);
      if (!end.closed) return { position: end.position, closed: false };
      position = end.position - 1;
    } else if (character === "(" || character === "[" || character === "{") depth += 1;
    else if (character === ")" || character === "]" || character === "}") {
      depth -= 1;
      if (depth <= 0) return { position: position + 1, closed: character === closer };
    }
  }
  return { position: text.length, closed: false };
}

function endOfString(text: string, start: number): { readonly position: number; readonly closed: boolean } {
  const mark = text[start] ?? '"';
  const quote = text.startsWith(mark.repeat(3), start) ? mark.repeat(3) : mark;
  for (let position = start + quote.length; position < text.length; position++) {
    const character = text[position];
    if (character === "\\") position += 1;
    else if (text.startsWith(quote, position)) return { position: position + quote.length, closed: true };
    else if (quote.length === 1 && (character === "\n" || character === "\r")) return { position, closed: false };
  }
  return { position: text.length, closed: false };
}
