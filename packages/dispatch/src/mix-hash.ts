/** Spreads text or numbers over 32 bits. Deterministic across processes; not for secrets. */

/** Avalanche of one 32-bit word: every input bit moves about half of the output bits. */
export function mixWord(word: number): number {
  let mixed = word | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** @returns an unsigned 32-bit integer that depends on every word and its place */
export function mixHash(...words: readonly (number | string)[]): number {
  let hash = 0x9e3779b9;
  for (const word of words) {
    const number = typeof word === "number" ? word : textHash(word);
    hash = mixWord(Math.imul(hash, 31) ^ mixWord(number));
  }
  return hash;
}

function textHash(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash, 31) + text.charCodeAt(at);
  return hash;
}
