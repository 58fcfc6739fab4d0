/**
 * Servers that give token ids send the whole prompt's ids back with every turn. They are held against what was sent as bytes, and
 * left out of what is parsed, so that an answer's cost does not grow with the context.
 */
const key = Buffer.from('"prompt_token_ids":');
const open = "[".charCodeAt(0);
const close = "]".charCodeAt(0);
const blank = " ".charCodeAt(0);

export interface WithoutEcho {
  /** JSON whose prompt ids are null. */
  readonly text: string;
  /** Null: the answer does not tell. */
  readonly samePrompt: boolean | null;
}

/** @param bytes an answer's JSON @param promptJson the JSON array that was sent */
export function takeOutEcho(bytes: Uint8Array, promptJson: () => Uint8Array): WithoutEcho {
  const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = answer.indexOf(key);
  if (at < 0) return { text: answer.toString(), samePrompt: null };
  let start = at + key.length;
  while (answer[start] === blank) start++;
  const end = answer.indexOf(close, start) + 1;
  if (answer[start] !== open || end === 0) return { text: answer.toString(), samePrompt: null };
  const echo = answer.subarray(start, end);
  const text = `${answer.toString("utf8", 0, start)}null${answer.toString("utf8", end)}`;
  const sent = promptJson();
  return { text, samePrompt: echo.equals(sent) || sameIds(echo, sent) };
}

/** Written with blanks, or otherwise: compared as numbers. */
function sameIds(echo: Buffer, sent: Uint8Array): boolean {
  if (!echo.includes(blank) && !echo.includes("\n")) return false;
  try {
    return JSON.stringify(JSON.parse(echo.toString())) === Buffer.from(sent).toString();
  } catch {
    return false;
  }
}
